#include "page.h"

#include <stdlib.h>
#include <string.h>

#include "library.h"

#define MOST ((int32_t)1 << 28) /* elements, attributes, pieces: far more than the parser's limits allow */
static const char NO_MEMORY[] = "out of memory";
static const char TOO_LARGE[] = "the page is too large";

typedef struct {
    page *page;
    size_t element_room, attribute_room, name_room, piece_room, event_room, text_room;
    int32_t *slots; /* numbers of names + 1 by address: the parser keeps each name once */
    size_t slot_count;
    const char *error;
} reader;

static int grow(reader *self, void *array, size_t *room, size_t wanted, size_t size) {
    void *memory;
    if (wanted <= *room) {
        return 1;
    }
    size_t larger = *room ? *room * 2 : 256;
    while (larger < wanted) {
        larger *= 2;
    }
    memcpy(&memory, array, sizeof memory); /* `array` is the address of a pointer of any type */
    memory = larger <= SIZE_MAX / size ? realloc(memory, larger * size) : NULL;
    if (memory == NULL) {
        self->error = NO_MEMORY;
        return 0;
    }
    memcpy(array, &memory, sizeof memory);
    *room = larger;
    return 1;
}

static size_t slot_of(const reader *self, const unsigned char *text) {
    size_t mask = self->slot_count - 1;
    size_t at = (size_t)(((uintptr_t)text >> 3) * 0x9E3779B97F4A7C15ull >> 20) & mask;
    while (self->slots[at] != 0 && self->page->names[self->slots[at] - 1].text != text) {
        at = (at + 1) & mask;
    }
    return at;
}

static int more_slots(reader *self) {
    size_t count = self->slot_count ? self->slot_count * 2 : 128;
    int32_t *slots = calloc(count, sizeof *slots);
    if (slots == NULL) {
        self->error = NO_MEMORY;
        return 0;
    }
    free(self->slots);
    self->slots = slots;
    self->slot_count = count;
    for (int32_t number = 0; number < self->page->name_count; number++) {
        slots[slot_of(self, self->page->names[number].text)] = number + 1;
    }
    return 1;
}

static int32_t name_of(reader *self, void *attribute) {
    page *into = self->page;
    size_t length = 0;
    const unsigned char *text = library.attribute_name(attribute, &length);
    if (text == NULL) {
        text = (const unsigned char *)"";
        length = 0;
    }
    if ((size_t)into->name_count * 2 >= self->slot_count && !more_slots(self)) {
        return -1;
    }
    size_t at = slot_of(self, text);
    if (self->slots[at] == 0) {
        if (!grow(self, &into->names, &self->name_room, (size_t)into->name_count + 1, sizeof *into->names)) {
            return -1;
        }
        into->names[into->name_count] = (page_name){text, length};
        self->slots[at] = ++into->name_count;
    }
    return self->slots[at] - 1;
}

static int add_attributes(reader *self, void *element) {
    page *into = self->page;
    for (void *at = library.first_attribute(element); at != NULL; at = library.next_attribute(at)) {
        int32_t name = name_of(self, at);
        if (name < 0 || !grow(self, &into->attributes, &self->attribute_room, (size_t)into->attribute_count + 1,
                              sizeof *into->attributes)) {
            return 0;
        }
        if (into->attribute_count >= MOST) {
            self->error = TOO_LARGE;
            return 0;
        }
        size_t length = 0;
        const unsigned char *value = library.attribute_value(at, &length);
        into->attributes[into->attribute_count++] = (page_attribute){value, value == NULL ? 0 : length, name};
    }
    return 1;
}

static int add_event(reader *self, int32_t number, int kind) {
    page *into = self->page;
    if (!grow(self, &into->events, &self->event_room, (size_t)into->event_count + 1, sizeof *into->events)) {
        return 0;
    }
    if (into->event_count >= MOST) {
        self->error = TOO_LARGE;
        return 0;
    }
    into->events[into->event_count++] = EVENT(number, kind);
    return 1;
}

static int add_element(reader *self, void *node, int32_t parent) {
    page *into = self->page;
    int32_t number = into->element_count;
    if (!grow(self, &into->elements, &self->element_room, (size_t)number + 2, sizeof *into->elements)) {
        return 0;
    }
    if (number >= MOST) {
        self->error = TOO_LARGE;
        return 0;
    }
    into->elements[number] = (page_element){
        .node = node,
        .tag = library.tag_id(node),
        .parent = parent,
        .first_attribute = into->attribute_count,
        .first_piece = into->piece_count,
        .first_event = into->event_count,
    };
    if (into->elements[number].tag < TAG_FLAGS) {
        into->has_tag[into->elements[number].tag] = 1;
    }
    into->element_count++;
    return add_event(self, number, EVENT_START) && add_attributes(self, node);
}

static int close_element(reader *self, int32_t number) {
    page *into = self->page;
    page_element *element = &into->elements[number];
    element->end = into->element_count;
    element->end_piece = into->piece_count;
    element->end_event = into->event_count;
    return add_event(self, number, EVENT_END);
}

static int add_text(reader *self, void *node, int32_t parent) {
    page *into = self->page;
    size_t length = 0;
    /* A copy in the document's memory, which goes with the document: to give back each alone takes longer than all else
     * that is done here. */
    const unsigned char *text = library.text_content(node, &length);
    if (text == NULL || length == 0) {
        return 1;
    }
    if (into->piece_count >= MOST || length >= (size_t)INT32_MAX - into->text_length) {
        self->error = TOO_LARGE;
        return 0;
    }
    if (!grow(self, &into->text, &self->text_room, into->text_length + length, 1) ||
        !grow(self, &into->pieces, &self->piece_room, (size_t)into->piece_count + 2, sizeof *into->pieces)) {
        return 0;
    }
    memcpy(into->text + into->text_length, text, length);
    into->pieces[into->piece_count] = (page_piece){into->text_length, parent};
    into->text_length += length;
    return add_event(self, into->piece_count++, EVENT_TEXT);
}

static int add_node(reader *self, void *node, int32_t parent) {
    switch (library.node_type(node)) {
    case NODE_ELEMENT:
        return add_element(self, node, parent);
    case NODE_TEXT:
        return add_text(self, node, parent);
    case NODE_COMMENT:
        return 1;
    default:
        return add_event(self, 0, EVENT_OTHER);
    }
}

static void walk(reader *self, void *root) {
    page *into = self->page;
    if (!add_node(self, root, -1)) {
        return;
    }
    void *node = root;
    int32_t element = 0; /* the innermost that is open */
    void *below = library.first_child(root);
    for (;;) {
        if (below != NULL) {
            int32_t before = into->element_count;
            node = below;
            if (!add_node(self, node, element)) {
                return;
            }
            if (into->element_count > before) {
                element = before;
                below = library.first_child(node);
                continue;
            }
        } else {
            if (!close_element(self, element) || element == 0) {
                return;
            }
            node = into->elements[element].node;
            element = into->elements[element].parent;
        }
        below = library.next(node);
    }
}

const char *page_read(page *self, void *root) {
    reader reading = {.page = self};
    memset(self, 0, sizeof *self);
    if (root == NULL || library.node_type(root) != NODE_ELEMENT) {
        return "not an element";
    }
    walk(&reading, root);
    if (reading.error == NULL && !grow(&reading, &self->pieces, &reading.piece_room, (size_t)self->piece_count + 1,
                                       sizeof *self->pieces)) {
        reading.error = NO_MEMORY;
    }
    free(reading.slots);
    if (reading.error != NULL) {
        page_free(self);
        return reading.error;
    }
    self->elements[self->element_count] = (page_element){.first_attribute = self->attribute_count};
    self->pieces[self->piece_count] = (page_piece){self->text_length, 0};
    return NULL;
}

void page_free(page *self) {
    free(self->elements);
    free(self->attributes);
    free(self->names);
    free(self->pieces);
    free(self->events);
    free(self->text);
    memset(self, 0, sizeof *self);
}

size_t characters_in(const unsigned char *text, size_t length) {
    const uint64_t ones = 0x0101010101010101u;
    size_t count = length, at = 0;
    for (; at + 8 <= length; at += 8) {
        uint64_t eight;
        memcpy(&eight, text + at, 8);
        /* 10xxxxxx: bytes that continue a character. The product adds up all bytes in the highest one. */
        count -= (size_t)(((eight >> 7 & ~eight >> 6 & ones) * ones) >> 56);
    }
    for (; at < length; at++) {
        count -= (text[at] & 0xC0) == 0x80;
    }
    return count;
}

size_t space_at(const unsigned char *text, size_t left) {
    unsigned char one = text[0];
    if (one < 0x80) {
        return one == ' ' || (one >= 9 && one <= 13) || (one >= 28 && one <= 31);
    }
    if (one == 0xC2) {
        return left >= 2 && (text[1] == 0x85 || text[1] == 0xA0) ? 2 : 0;
    }
    if (left < 3 || one < 0xE1 || one > 0xE3) {
        return 0;
    }
    unsigned code = (unsigned)(one & 15) << 12 | (unsigned)(text[1] & 63) << 6 | (text[2] & 63);
    int is_space = (code >= 0x2000 && code <= 0x200A) || code == 0x1680 || code == 0x2028 || code == 0x2029 ||
                   code == 0x202F || code == 0x205F || code == 0x3000;
    return is_space ? 3 : 0;
}
