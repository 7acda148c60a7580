#include <sys/resource.h>

#include "descriptors.h"

// Runs before main: no test has begun yet, and no test has to ask for it. macOS gives a process 256 descriptors, and takes
// no more than 10,240 from one that asks for as many as it may have.
__attribute__((constructor)) static void raise_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= EASYNETWORK_TEST_DESCRIPTORS) return;
    rlim_t wanted = EASYNETWORK_TEST_DESCRIPTORS;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}
