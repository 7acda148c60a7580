#include <stdlib.h>
#include <sys/resource.h>

#include "test_process.h"

// macOS gives a process 256 descriptors, and takes no more than 10,240 from one that asks for as many as it may have.
static void raise_limit_of_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= EASYNETWORK_TEST_DESCRIPTORS) return;
    rlim_t wanted = EASYNETWORK_TEST_DESCRIPTORS;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}

// Runs before main: no test has begun yet, and no test has to ask for it.
__attribute__((constructor)) static void prepare(void) {
    raise_limit_of_descriptors();
    // Two thousand tests at once wait for each other: what takes milliseconds takes a minute on two processors, and
    // deadlines of servers and clients pass meanwhile. A number that is set already stays.
    setenv("SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH", EASYNETWORK_TESTS_AT_ONCE, 0);
}
