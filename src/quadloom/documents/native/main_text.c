/* Which lines of a page's text are main text: the rules of quadloom.documents.syntaxes.html.main_text, which says why. Names,
 * limits and signs of sentences are given by that module once, so they are written in one place. */
#include <stdlib.h>
#include <string.h>

#include "elements.h"

#define TAGS 1024    /* lexbor's own names have small numbers */
#define SLOTS 1024   /* of the table of words; a power of two, at least twice as many as words */
#define MAX_WORD 24  /* letters */
#define MAX_SIGNS 32 /* characters that end a sentence or a quotation */

/* As in main_text.py. */
enum { IS_NOISE = 1, IS_BOILERPLATE = 2, IS_PICTURE = 4, IS_COMMENT = 8 };
enum {
    NO_PROSE = 1 << 4,
    ENTRY = 1 << 5,
    PART = 1 << 6,
    HEADING = 1 << 7,
    LIST = 1 << 8,
    TEXT = 1 << 9,
    CELL = 1 << 10,
    DATA = 1 << 11,
    UNJUDGED = 1 << 12,
    TABLE = 1 << 13,
    CODE = 1 << 14,
    HEADER = 1 << 15,
};
enum { KEPT = 1, LEFT_OUT = 2 };

typedef struct {
    char letters[MAX_WORD + 1];
    int signs;
} known_word;

static struct {
    int tags[TAGS];
    known_word words[SLOTS];
    Py_UCS4 ends[MAX_SIGNS], quotes[MAX_SIGNS];
    struct {
        int min_prose, min_dense_prose, min_listed, link_cost, entry_link_cost, short_line_cost, noise_share,
            boilerplate_share, wrapper_share, min_commented, max_caption, article_share, long_article, long_article_share,
            wordy;
    } limits;
} rules;

typedef struct {
    int32_t held_by, bare, outermost; /* places of other elements */
    int tag;                          /* what rules.tags has of its name */
    int signs;
    int64_t size, linked, count, prose, below, balance; /* of all lines below it; `below`: prose that is no noise */
    unsigned char noise, boilerplate, inside, around, data, titled;
} holder;

typedef struct {
    const unsigned char *text;
    size_t bytes;
    int64_t size, linked, prose;
    int32_t place;
} line;

typedef struct {
    const page *page;
    holder *holders;
    line *lines;
    int32_t holder_count, line_count;
} outline;

static known_word *slot_of(const char *letters) {
    uint32_t hash = 2166136261u;
    for (const char *at = letters; *at != 0; at++) {
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    }
    known_word *slot = &rules.words[(hash ^ (hash >> 15)) % SLOTS];
    while (slot->letters[0] != 0 && strcmp(slot->letters, letters) != 0) {
        slot = slot == &rules.words[SLOTS - 1] ? rules.words : slot + 1;
    }
    return slot;
}

static int is_lower(unsigned char one) { return one >= 'a' && one <= 'z'; }
static int is_upper(unsigned char one) { return one >= 'A' && one <= 'Z'; }

/* What the words of an attribute say: `[A-Z]?[a-z]+|[A-Z]+(?![a-z])`. */
static int signs_in(const unsigned char *text, size_t length) {
    int signs = 0;
    for (size_t at = 0; at < length;) {
        size_t end = at + (size_t)is_upper(text[at]);
        while (end < length && is_lower(text[end])) {
            end++;
        }
        if (end == at) {
            at++;
            continue;
        }
        if (end == at + 1 && is_upper(text[at])) { /* capital letters, the last of which may begin the next word */
            while (end < length && is_upper(text[end])) {
                end++;
            }
            if (end < length && is_lower(text[end])) {
                end--;
            }
        }
        char word[MAX_WORD + 1];
        if (end - at <= MAX_WORD) {
            for (size_t letter = at; letter < end; letter++) {
                word[letter - at] = (char)(text[letter] | 0x20);
            }
            word[end - at] = 0;
            signs |= slot_of(word)->signs;
        }
        at = end;
    }
    return signs;
}

static int signs_of(const page *page, int32_t element, int tag) {
    int signs = tag & (IS_NOISE | IS_BOILERPLATE);
    if (signs != 0 || tag & UNJUDGED) {
        return signs;
    }
    int32_t end = page->elements[element + 1].first_attribute;
    for (int32_t at = page->elements[element].first_attribute; at < end; at++) {
        const page_attribute *attribute = &page->attributes[at];
        const page_name *name = &page->names[attribute->name];
        if (attribute->value != NULL && ((name->length == 5 && memcmp(name->text, "class", 5) == 0) ||
                                         (name->length == 2 && memcmp(name->text, "id", 2) == 0))) {
            signs |= signs_in(attribute->value, attribute->length);
        }
    }
    return signs;
}

static int is_one_of(Py_UCS4 character, const Py_UCS4 *characters) {
    for (; *characters != 0; characters++) {
        if (*characters == character) {
            return 1;
        }
    }
    return 0;
}

/* The last character before `end`, which is moved to its beginning. */
static Py_UCS4 character_before(const unsigned char *text, size_t *end) {
    size_t at = *end - 1;
    while (at > 0 && (text[at] & 0xC0) == 0x80) {
        at--;
    }
    size_t length = *end - at;
    Py_UCS4 code = length == 1 ? text[at] : length == 2 ? text[at] & 0x1F : length == 3 ? text[at] & 0x0F : text[at] & 7;
    for (size_t next = at + 1; next < *end; next++) {
        code = code << 6 | (text[next] & 0x3F);
    }
    *end = at;
    return code;
}

static int ends_sentence(const line *self) {
    size_t end = self->bytes;
    Py_UCS4 last = character_before(self->text, &end), before = last;
    if (is_one_of(last, rules.ends)) {
        return 1;
    }
    if (!is_one_of(last, rules.quotes)) {
        return 0;
    }
    while (end > 0 && is_one_of(before, rules.quotes)) {
        before = character_before(self->text, &end);
    }
    return is_one_of(before, rules.ends) || (last != ')' && last != ' ');
}

static int64_t prose_of(const line *self, int tag) {
    if (self->size < rules.limits.min_dense_prose || tag & NO_PROSE) {
        return 0;
    }
    if (self->bytes == (size_t)self->size) { /* ASCII */
        int64_t blanks = 0;
        for (size_t at = 0; at < self->bytes; at++) {
            blanks += self->text[at] == ' ';
        }
        if (self->size < rules.limits.min_prose || blanks * rules.limits.wordy < self->size) {
            return 0;
        }
    } else if (self->size < rules.limits.min_prose && (int64_t)self->bytes * 5 <= self->size * 11) {
        return 0;
    }
    int64_t prose = self->size - self->linked * (tag & ENTRY ? rules.limits.entry_link_cost : rules.limits.link_cost);
    return prose <= 0 ? 0 : ends_sentence(self) ? prose : (prose + 1) / 2;
}

/* The elements that hold lines, and what holds those, up to the root. */
static int find_holders(outline *self, int32_t root, int32_t *places) {
    const page *page = self->page;
    for (int32_t at = 0; at < self->line_count; at++) {
        for (int32_t one = self->lines[at].place; one > root && !places[one]; one = page->elements[one].parent) {
            places[one] = 1;
            self->holder_count++;
        }
    }
    self->holder_count++;
    self->holders = calloc((size_t)self->holder_count, sizeof *self->holders);
    if (self->holders == NULL) {
        return 0;
    }
    places[root] = 0;
    int32_t count = 0;
    for (int32_t one = root; one < page->elements[root].end; one++) {
        if (one == root || places[one]) {
            holder *into = &self->holders[count];
            uintptr_t tag = page->elements[one].tag;
            into->tag = tag < TAGS ? rules.tags[tag] : 0;
            into->held_by = one == root ? 0 : places[page->elements[one].parent];
            into->signs = one == root ? 0 : signs_of(page, one, into->tag);
            places[one] = count++;
        }
    }
    for (int32_t at = 0; at < self->line_count; at++) {
        self->lines[at].place = places[self->lines[at].place];
    }
    return 1;
}

static void add_up(outline *self) {
    for (int32_t at = 0; at < self->line_count; at++) {
        line *one = &self->lines[at];
        holder *into = &self->holders[one->place];
        one->prose = prose_of(one, into->tag);
        into->size += one->size;
        into->linked += one->linked;
        into->prose += one->prose;
        into->count++;
    }
    for (int32_t place = self->holder_count - 1; place > 0; place--) {
        const holder *one = &self->holders[place];
        holder *into = &self->holders[one->held_by];
        into->size += one->size;
        into->linked += one->linked;
        into->prose += one->prose;
        into->count += one->count;
    }
    for (int32_t place = 0; place < self->holder_count; place++) {
        if (self->holders[place].tag & HEADER) {
            int32_t at = place;
            while (at > 0 && !(self->holders[at].tag & TABLE)) {
                at = self->holders[at].held_by;
            }
            self->holders[at].titled = 1;
        }
    }
}

static void judge_comments(outline *self) {
    int64_t whole = self->holders[0].prose, others = 0;
    int any = 0;
    for (int32_t place = 1; place < self->holder_count; place++) {
        holder *one = &self->holders[place];
        any |= one->signs & IS_COMMENT;
        one->noise = self->holders[one->held_by].noise ||
                     (one->signs & IS_NOISE && one->prose * 100 <= whole * rules.limits.noise_share) ||
                     (one->signs & IS_COMMENT && one->prose * 100 <= whole * rules.limits.wrapper_share);
    }
    if (!any) {
        return;
    }
    for (int32_t at = 0; at < self->line_count; at++) {
        others += self->holders[self->lines[at].place].noise ? 0 : self->lines[at].prose;
    }
    for (int32_t place = 1; place < self->holder_count && others >= rules.limits.min_commented; place++) {
        if (self->holders[place].signs & IS_COMMENT) {
            self->holders[place].signs |= IS_NOISE | IS_BOILERPLATE;
        }
    }
}

static void judge_names(outline *self) {
    const holder *root = &self->holders[0];
    for (int32_t place = 1; place < self->holder_count; place++) {
        holder *one = &self->holders[place];
        const holder *outer = &self->holders[one->held_by];
        one->boilerplate = outer->boilerplate || (one->signs & IS_BOILERPLATE &&
                                                  one->size * 100 <= root->size * rules.limits.boilerplate_share);
        one->noise = outer->noise ||
                     (one->signs & IS_NOISE && one->prose * 100 <= root->prose * rules.limits.noise_share) ||
                     (one->signs & IS_PICTURE && one->size <= rules.limits.max_caption && one->count <= 3);
    }
}

static int32_t article_root(outline *self) {
    holder *holders = self->holders;
    for (int32_t at = 0; at < self->line_count; at++) {
        const line *one = &self->lines[at];
        holder *into = &holders[one->place];
        int64_t size = one->size < 200 ? one->size : 200;
        into->below += into->noise ? 0 : one->prose;
        into->balance += into->noise       ? -(size * 3 / 10)
                         : one->prose != 0 ? one->prose
                                           : -rules.limits.short_line_cost - one->linked / 2;
    }
    int32_t root = 0;
    for (int32_t place = self->holder_count - 1; place > 0; place--) {
        holders[holders[place].held_by].below += holders[place].below;
        holders[holders[place].held_by].balance += holders[place].balance;
    }
    for (int32_t place = 1; place < self->holder_count; place++) {
        root = holders[place].balance >= holders[root].balance ? place : root;
    }
    while (root > 0 && holders[root].tag & PART) {
        root = holders[root].held_by;
    }
    for (int32_t place = root; place > 0 && holders[place].tag & (CELL | TABLE); place = holders[place].held_by) {
        root = holders[place].titled ? holders[place].held_by : root;
    }
    return root;
}

static int is_data(const holder *self) {
    if (self->tag & CODE) {
        return self->linked * 10 <= self->size;
    }
    if (self->count < 2 || self->size < rules.limits.min_listed) {
        return 0;
    }
    if (self->tag & TABLE) {
        return self->titled || self->linked * 5 <= self->size * 2;
    }
    return self->linked * 10 <= self->size;
}

static void find_parts(outline *self, int32_t root) {
    holder *holders = self->holders;
    for (int32_t place = root; place > 0; place = holders[place].held_by) {
        holders[place].around = 1;
    }
    for (int32_t place = 0; place < self->holder_count; place++) {
        holder *one = &holders[place];
        const holder *outer = &holders[one->held_by];
        one->inside = place == root || outer->inside;
        one->bare = one->below != 0 ? 0 : outer->below != 0 ? place : outer->bare;
        if (place > 0 && outer->outermost) {
            one->outermost = outer->outermost;
            one->data = outer->data;
        } else if (place > 0 && one->tag & DATA && !one->around) {
            one->outermost = place;
            one->data = (unsigned char)is_data(one);
        }
    }
}

/* Whether a short line of an article is part of it. */
static int belongs(const outline *self, const line *one, int between, int follows) {
    const holder *bare = &self->holders[self->holders[one->place].bare];
    int64_t linked = bare->linked, size = bare->size;
    if (bare->tag & HEADING) {
        return between && linked * 2 < size;
    }
    if (bare->tag & LIST) {
        return linked * 5 < size * 2 && (between || follows);
    }
    if (bare->tag & TEXT) {
        return linked * 5 < size * 3 && (between || ends_sentence(one));
    }
    if (bare->tag & CELL) {
        return between && linked * 2 < size;
    }
    return between && linked * 10 < size * 3 && bare->count == 1 && ends_sentence(one);
}

/* Writes a mark for each line. Returns whether they are an article's. */
static int mark_article(outline *self, unsigned char *marks) {
    int32_t root = article_root(self);
    if (self->holders[0].below == 0) {
        return 0;
    }
    find_parts(self, root);
    int32_t first = 0, last = -1;
    for (int32_t at = self->line_count - 1; at >= 0; at--) {
        const holder *around = &self->holders[self->lines[at].place];
        if (self->lines[at].prose != 0 && !around->noise && around->inside) {
            first = at;
            last = last < 0 ? at : last;
        }
    }
    int64_t said = 0, found = 0;
    for (int32_t at = 0; at < self->line_count; at++) {
        const line *one = &self->lines[at];
        const holder *around = &self->holders[one->place];
        int between = first <= at && at <= last, keep;
        if (around->noise || around->data || !around->inside) {
            keep = !around->noise && around->data;
        } else if (one->prose != 0) {
            keep = 1;
        } else if (around->below != 0) { /* beside prose, in the same element */
            keep = between && one->linked * 2 <= one->size;
        } else {
            keep = belongs(self, one, between, at == last + 1 || (at > 0 && marks[at - 1] & KEPT));
        }
        marks[at] = (unsigned char)((keep ? KEPT : 0) | (around->noise ? LEFT_OUT : 0));
        said += around->boilerplate ? 0 : one->size - one->linked;
        found += keep ? one->size - one->linked : 0;
    }
    return found * 100 >= said * rules.limits.article_share ||
           (found >= rules.limits.long_article && found * 100 >= said * rules.limits.long_article_share);
}

static void mark(outline *self, unsigned char *marks) {
    add_up(self);
    judge_comments(self);
    judge_names(self);
    if (self->holders[0].prose != 0 && mark_article(self, marks)) {
        return;
    }
    for (int32_t at = 0; at < self->line_count; at++) {
        marks[at] = self->holders[self->lines[at].place].boilerplate ? LEFT_OUT : KEPT;
    }
}

/* Takes a number for each line out of a list. */
static int64_t number_in(PyObject *list, Py_ssize_t at) {
    PyObject *number = PyList_GetItem(list, at);
    return number == NULL ? -1 : PyLong_AsLong(number);
}

static int read_lines(outline *self, PyObject *sizes, PyObject *linked, PyObject *holders, const unsigned char *text,
                      const unsigned char *end) {
    for (int32_t at = 0; at < self->line_count; at++) {
        const unsigned char *stop = memchr(text, '\n', (size_t)(end - text));
        stop = stop == NULL ? end : stop;
        self->lines[at] = (line){text, (size_t)(stop - text), number_in(sizes, at), number_in(linked, at), 0,
                                 (int32_t)number_in(holders, at)};
        if (PyErr_Occurred() || self->lines[at].place < 0 || self->lines[at].place >= self->page->element_count ||
            stop == text) {
            return 0;
        }
        text = stop < end ? stop + 1 : end;
    }
    return 1;
}

PyObject *main_text_marks(PyObject *module, PyObject *arguments) {
    (void)module;
    elements_object *elements;
    PyObject *text, *sizes, *linked, *holders;
    int root;
    if (!PyArg_ParseTuple(arguments, "O!i(UO!O!O!)", elements_type, &elements, &root, &text, &PyList_Type, &sizes, &PyList_Type, &linked,
                          &PyList_Type, &holders)) {
        return NULL;
    }
    Py_ssize_t count = PyList_Size(holders), length;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &length);
    const page *page = &elements->page;
    if (bytes == NULL || root < 0 || root >= page->element_count || PyList_Size(sizes) != count ||
        PyList_Size(linked) != count) {
        return bytes == NULL ? NULL : (PyErr_SetString(PyExc_ValueError, "not the lines of this page"), NULL);
    }
    outline self = {page, NULL, calloc((size_t)count + 1, sizeof *self.lines), 0, (int32_t)count};
    int32_t *places = calloc((size_t)page->element_count, sizeof *places);
    unsigned char *marks = calloc((size_t)count + 1, 1);
    PyObject *result = NULL;
    const unsigned char *start = (const unsigned char *)bytes;
    if (self.lines == NULL || places == NULL || marks == NULL) {
        PyErr_NoMemory();
    } else if (!read_lines(&self, sizes, linked, holders, start, start + length)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "not the lines of this page");
        }
    } else if (!find_holders(&self, root, places)) {
        PyErr_NoMemory();
    } else {
        mark(&self, marks);
        result = PyBytes_FromStringAndSize((const char *)marks, count);
    }
    free(self.holders);
    free(self.lines);
    free(places);
    free(marks);
    return result;
}

static int read_characters(PyObject *text, Py_UCS4 *into) {
    Py_ssize_t count = PyUnicode_GetLength(text);
    for (Py_ssize_t at = 0; at < count && at < MAX_SIGNS - 1; at++) {
        into[at] = PyUnicode_ReadChar(text, at);
    }
    return count < MAX_SIGNS;
}

PyObject *main_text_rules(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *tags, *words, *ends, *quotes, *name, *value;
    Py_ssize_t at = 0;
    if (!PyArg_ParseTuple(arguments, "O!O!UU(iiiiiiiiiiiiiii)", &PyDict_Type, &tags, &PyDict_Type, &words, &ends, &quotes,
                          &rules.limits.min_prose, &rules.limits.min_dense_prose, &rules.limits.min_listed,
                          &rules.limits.link_cost, &rules.limits.entry_link_cost, &rules.limits.short_line_cost,
                          &rules.limits.noise_share, &rules.limits.boilerplate_share, &rules.limits.wrapper_share,
                          &rules.limits.min_commented, &rules.limits.max_caption, &rules.limits.article_share,
                          &rules.limits.long_article, &rules.limits.long_article_share, &rules.limits.wordy)) {
        return NULL;
    }
    int fits = read_characters(ends, rules.ends) && read_characters(quotes, rules.quotes) && PyDict_Size(words) * 2 < SLOTS;
    while (fits && PyDict_Next(tags, &at, &name, &value)) {
        size_t tag = PyLong_AsSize_t(name);
        fits = tag < TAGS;
        if (fits) {
            rules.tags[tag] = (int)PyLong_AsLong(value);
        }
    }
    for (at = 0; fits && PyDict_Next(words, &at, &name, &value);) {
        Py_ssize_t length;
        const char *letters = PyUnicode_AsUTF8AndSize(name, &length);
        fits = letters != NULL && length > 0 && length <= MAX_WORD;
        if (fits) {
            known_word *slot = slot_of(letters);
            memcpy(slot->letters, letters, (size_t)length + 1);
            slot->signs = (int)PyLong_AsLong(value);
        }
    }
    if (!fits && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "more or longer names than there is room for");
    }
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_RETURN_NONE;
}
