/* One parsed page as arrays: elements in document order, their attributes, and the pieces of text between them.
 *
 * Read once, in one walk; afterwards nothing of lexbor is asked but the names of elements. Attribute values stay where
 * the parser has them, so the parser must live as long as the page and its tree must not be changed. */
#ifndef QUADLOOM_PAGE_H
#define QUADLOOM_PAGE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    void *node;
    uintptr_t tag;           /* lexbor's number of the name; of unknown names an address */
    int32_t parent;          /* -1 for the root */
    int32_t end;             /* the first element behind this one and all that it holds */
    int32_t first_attribute; /* its attributes end where those of the next element begin */
    int32_t first_piece, end_piece;
    int32_t first_event, end_event;
} page_element;

typedef struct {
    const unsigned char *value; /* NULL: the attribute has no value */
    size_t length;
    int32_t name; /* number in `names` */
} page_attribute;

typedef struct {
    const unsigned char *text;
    size_t length;
} page_name;

typedef struct {
    size_t start; /* in `text`; ends where the next one begins */
    int32_t parent;
} page_piece;

/* Events are what a reader of the markup would pass: the number of an element or piece, and which of these. */
enum { EVENT_TEXT = 0, EVENT_START = 1, EVENT_END = 2, EVENT_OTHER = 3 };
#define EVENT(number, kind) ((int32_t)(((uint32_t)(number) << 2) | (kind)))

#define TAG_FLAGS 256 /* lexbor numbers the names of HTML from 0 */

typedef struct {
    unsigned char has_tag[TAG_FLAGS];
    page_element *elements; /* and one more behind the last, which holds the ends */
    int32_t element_count;
    page_attribute *attributes;
    int32_t attribute_count;
    page_name *names; /* of attributes; one may occur twice */
    int32_t name_count;
    page_piece *pieces; /* and one more behind the last */
    int32_t piece_count;
    int32_t *events;
    int32_t event_count;
    unsigned char *text; /* of all pieces, one behind the other, in UTF-8 */
    size_t text_length;
} page;

/* Read the tree below `root`, an element. Returns NULL, or why it could not be done; then nothing is allocated. */
const char *page_read(page *self, void *root);
void page_free(page *self);

/* How many characters UTF-8 text has. */
size_t characters_in(const unsigned char *text, size_t length);

/* How many bytes of white space begin here, by what str.split() splits at; 0 = none. `left` is at least 1. */
size_t space_at(const unsigned char *text, size_t left);

#endif
