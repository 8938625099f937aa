/* Lexbor's public C functions, found by name in the shared object that selectolax has loaded already. No structure of
 * lexbor is declared here: nodes, attributes and documents are addresses that only its own functions look into. */
#ifndef QUADLOOM_LIBRARY_H
#define QUADLOOM_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

enum { NODE_ELEMENT = 1, NODE_TEXT = 3, NODE_COMMENT = 8 }; /* numbers of the DOM standard */

typedef struct {
    int (*node_type)(void *node);
    uintptr_t (*tag_id)(void *node);
    void *(*first_child)(void *node);
    void *(*next)(void *node);
    unsigned char *(*text_content)(void *node, size_t *length);
    const unsigned char *(*element_name)(void *element, size_t *length);
    void *(*first_attribute)(void *element);
    void *(*next_attribute)(void *attribute);
    const unsigned char *(*attribute_name)(void *attribute, size_t *length);
    const unsigned char *(*attribute_value)(void *attribute, size_t *length);
} library_functions;

extern library_functions library;

/* Find all functions in the loaded library at `path`. Returns NULL, or what is missing. */
const char *library_open(const char *path);

#endif
