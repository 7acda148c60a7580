#if defined(__linux__)

#define _GNU_SOURCE
#include "CCurl.h"

#include <dlfcn.h>
#include <pthread.h>

static int (*has_pending)(const void *ssl);
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Looks in the library that this libcurl uses: the process may have several.
static void find_has_pending(void) {
    Dl_info info;
    if (!dladdr((void *)ccurl.easy_init, &info)) { return; }
    void *libcurl = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!libcurl) { return; }
    *(void **)&has_pending = dlsym(libcurl, "SSL_has_pending");
    // dlopen counted it once more; libcurl keeps it loaded.
    dlclose(libcurl);
}

bool ccurl_tls_has_pending(void *easy) {
    pthread_once(&once, find_has_pending);
    struct ccurl_tls_session *session = NULL;
    if (!has_pending || ccurl.easy_getinfo(easy, CCURLINFO_TLS_SSL_PTR, &session)) { return false; }
    if (!session || session->backend != CCURLSSLBACKEND_OPENSSL || !session->internals) { return false; }
    return has_pending(session->internals) != 0;
}

#endif
