#if defined(__linux__)

#define _GNU_SOURCE
#include "CCurl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct ccurl_functions ccurl;
static ccurl_code (*global_trace)(const char *components);

static bool fail(const char *reason, char *problem, size_t problem_size) {
    snprintf(problem, problem_size, "%s", reason ? reason : "unknown error");
    return false;
}

bool ccurl_load(const char *path, uint32_t minimum, char *problem, size_t problem_size) {
    // The soname finds a library that is already loaded. A library that is named by path can be loaded in addition to
    // that one. It must prefer its own symbols; otherwise half of its calls would reach the other library. The address
    // sanitizer forbids that, so a program that is built with it must preload the library.
    int flags = RTLD_NOW | RTLD_LOCAL;
#if defined(RTLD_DEEPBIND) && !__has_feature(address_sanitizer)
    if (path) { flags |= RTLD_DEEPBIND; }
#endif
    // The library is never closed, because libcurl's threads and exit handlers can outlive its users.
    void *library = dlopen(path ? path : "libcurl.so.4", flags);
    if (!library) { return fail(dlerror(), problem, problem_size); }

    struct ccurl_functions found;
#define FIND(result, name, parameters)                                      \
    *(void **)&found.name = dlsym(library, "curl_" #name);                  \
    if (!found.name) { return fail(dlerror(), problem, problem_size); }
    CCURL_FUNCTIONS(FIND)
#undef FIND

    const struct ccurl_version_info *info = (const struct ccurl_version_info *)found.version_info(0);
    if (!info || info->version_num < minimum) {
        snprintf(problem, problem_size, "its version is %s", info ? info->version : "unknown");
        return false;
    }
    ccurl = found;
    *(void **)&global_trace = dlsym(library, "curl_global_trace");
    return true;
}

void ccurl_trace_http2(void) {
    if (global_trace) { global_trace("http/2"); }
}

const char *ccurl_environment_path(void) { return secure_getenv("EASYNETWORK_LIBCURL"); }

#else
// Other platforms do not use libcurl, but a target needs a source file.
#endif
