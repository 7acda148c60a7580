#ifndef CCURL_H
#define CCURL_H

#if defined(__linux__)

// libcurl's checks of setopt arguments are macros for C callers with literal options; the types below do their work.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#if LIBCURL_VERSION_NUM < 0x075100
#error "libcurl 7.81 or later is needed"
#endif

// Swift cannot call variadic functions: one wrapper for each type of argument.

typedef size_t (*ccurl_transfer_function)(char *bytes, size_t size, size_t count, void *context);
typedef int (*ccurl_seek_function)(void *context, curl_off_t offset, int origin);

static inline CURLcode ccurl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(handle, option, value);
}

// libcurl copies the string, but for CURLOPT_POSTFIELDS, which is not to be set with it.
static inline CURLcode ccurl_set_string(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_pointer(CURL *handle, CURLoption option, void *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_list(CURL *handle, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(handle, option, value);
}

// For CURLOPT_HEADERFUNCTION, CURLOPT_WRITEFUNCTION and CURLOPT_READFUNCTION.
static inline CURLcode ccurl_set_transfer_function(CURL *handle, CURLoption option, ccurl_transfer_function value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_seek_function(CURL *handle, ccurl_seek_function value) {
    return curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, value);
}

// CURLOPT_PROTOCOLS by its number: 7.85 deprecates the name, and has CURLOPT_PROTOCOLS_STR, which 7.81 has not.
static inline CURLcode ccurl_allow_http_only(CURL *handle) {
    return curl_easy_setopt(handle, (CURLoption)(CURLOPTTYPE_LONG + 181), (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
}

// CURLOPT_QUICK_EXIT by its number: older headers than 7.87 lack the name; an older library refuses it.
static inline CURLcode ccurl_set_quick_exit(CURL *handle) {
    return curl_easy_setopt(handle, (CURLoption)(CURLOPTTYPE_LONG + 322), 1L);
}

// For CURLOPT_PREREQFUNCTION.
typedef int (*ccurl_connected_function)(void *context, char *address, char *local_address, int port, int local_port);

static inline CURLcode ccurl_set_connected_function(CURL *handle, ccurl_connected_function value) {
    return curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, value);
}

// For CURLOPT_SSL_CTX_FUNCTION: a connection is there and is about to be made secure.
typedef CURLcode (*ccurl_securing_function)(CURL *handle, void *tls, void *context);

static inline CURLcode ccurl_set_securing_function(CURL *handle, ccurl_securing_function value) {
    return curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, value);
}

static inline CURLcode ccurl_get_offset(CURL *handle, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode ccurl_get_long(CURL *handle, CURLINFO info, long *value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

#endif

#endif
