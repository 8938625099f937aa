/* Two errors on purpose. tools/check_native.sh loads this to see that the sanitizers report them. */

#include <stdlib.h>

/* Reads one byte beyond a block of `size` bytes. */
int planted_overflow(size_t size)
{
    char *block = calloc(size, 1);
    int beyond = block == NULL ? 0 : ((volatile char *)block)[size];
    free(block);
    return beyond;
}

/* Loses a block of `size` bytes. */
int planted_leak(size_t size)
{
    char *volatile lost = malloc(size);
    int found = lost != NULL;
    lost = NULL;
    return found;
}
