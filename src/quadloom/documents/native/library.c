#include "library.h"

#include <dlfcn.h>
#include <string.h>

library_functions library;

const char *library_open(const char *path) {
    library_functions found;
    struct {
        const char *name;
        void *target;
    } wanted[] = {
        {"lxb_dom_node_type_noi", &found.node_type},
        {"lxb_dom_node_tag_id_noi", &found.tag_id},
        {"lxb_dom_node_first_child_noi", &found.first_child},
        {"lxb_dom_node_next_noi", &found.next},
        {"lxb_dom_node_text_content", &found.text_content},
        {"lxb_dom_element_qualified_name", &found.element_name},
        {"lxb_dom_element_first_attribute_noi", &found.first_attribute},
        {"lxb_dom_element_next_attribute_noi", &found.next_attribute},
        {"lxb_dom_attr_qualified_name", &found.attribute_name},
        {"lxb_dom_attr_value_noi", &found.attribute_value},
    };
    /* Never loads anything: a second copy of the parser would not know the nodes of the first. The handle stays open,
     * so that the functions stay where they are. */
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) {
        return "the shared object of the HTML parser";
    }
    for (size_t at = 0; at < sizeof wanted / sizeof wanted[0]; at++) {
        void *symbol = dlsym(handle, wanted[at].name);
        if (symbol == NULL) {
            return wanted[at].name;
        }
        memcpy(wanted[at].target, &symbol, sizeof symbol); /* POSIX: a function's address fits into a pointer */
    }
    library = found;
    return NULL;
}
