#if defined(__linux__)

#define _GNU_SOURCE
#include "CCurl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static int (*has_pending)(const void *ssl);
static int (*get_shutdown)(const void *ssl);
static void *(*get_store)(const void *context);
static int (*load_locations)(void *store, const char *file, const char *folder);
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Searches the library that this libcurl uses, because the process can have several.
static void find_functions(void) {
    Dl_info info;
    if (!dladdr((void *)ccurl.easy_init, &info)) { return; }
    void *libcurl = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!libcurl) { return; }
    *(void **)&has_pending = dlsym(libcurl, "SSL_has_pending");
    *(void **)&get_shutdown = dlsym(libcurl, "SSL_get_shutdown");
    *(void **)&get_store = dlsym(libcurl, "SSL_CTX_get_cert_store");
    *(void **)&load_locations = dlsym(libcurl, "X509_STORE_load_locations");
    // Release the reference that dlopen added. libcurl keeps the library loaded.
    dlclose(libcurl);
}

// Returns the handle's session; NULL if it has no session, and with libraries other than OpenSSL and its relatives.
static const void *session_of(void *easy) {
    pthread_once(&once, find_functions);
    struct ccurl_tls_session *session = NULL;
    if (ccurl.easy_getinfo(easy, CCURLINFO_TLS_SSL_PTR, &session)) { return NULL; }
    return session && session->backend == CCURLSSLBACKEND_OPENSSL ? session->internals : NULL;
}

static const struct ccurl_version_info *version_info(void) { return (struct ccurl_version_info *)ccurl.version_info(0); }

bool ccurl_tls_can_add_default_folder(void) {
    pthread_once(&once, find_functions);
    const struct ccurl_version_info *info = version_info();
    // A libcurl with several TLS libraries names the others in parentheses, and can use another one.
    const char *name = "OpenSSL/";
    bool is_openssl = info->ssl_version && strncmp(info->ssl_version, name, strlen(name)) == 0
        && !strchr(info->ssl_version, '(');
    return is_openssl && info->cainfo && info->capath && get_store && load_locations;
}

void ccurl_tls_add_default_folder(void *context) {
    void *store = get_store(context);
    // libcurl uses the store again for later connections. OpenSSL adds a folder to a store only once.
    if (store) { load_locations(store, NULL, version_info()->capath); }
}

bool ccurl_tls_has_pending(void *easy) {
    const void *session = session_of(easy);
    return session && has_pending && has_pending(session) != 0;
}

bool ccurl_tls_is_open(void *easy) {
    const void *session = session_of(easy);
    // The flag 2 is SSL_RECEIVED_SHUTDOWN.
    return session && get_shutdown && (get_shutdown(session) & 2) == 0;
}

#endif
