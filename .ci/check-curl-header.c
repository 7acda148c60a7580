// Compares what CCurl declares with libcurl's own header; see .ci/libcurl. The compiler compares the prototypes.

#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

#include "CCurl.h"

#include <stdio.h>

static int failures = 0;

static void check(const char *name, long long declared, long long real) {
    if (declared == real) { return; }
    printf("%s is %lld, not %lld\n", name, real, declared);
    failures += 1;
}

int main(void) {
    struct ccurl_functions real;
#define FUNCTION(result, name, parameters) real.name = curl_##name;
    CCURL_FUNCTIONS(FUNCTION)
    (void)real;

    ccurl_transfer_function transfer[] = {(curl_write_callback)NULL, (curl_read_callback)NULL};
    ccurl_seek_function seek = (curl_seek_callback)NULL;
    ccurl_progress_function progress = (curl_xferinfo_callback)NULL;
    ccurl_connected_function connected = (curl_prereq_callback)NULL;
    ccurl_securing_function securing = (curl_ssl_ctx_callback)NULL;
    curl_off_t *offset = (int64_t *)NULL;
    (void)transfer, (void)seek, (void)progress, (void)connected, (void)securing, (void)offset;

#define LAYOUT(ours, theirs, field) \
    check(#theirs "." #field, offsetof(struct ours, field), offsetof(theirs, field)); \
    check(#theirs "." #field " in bytes", sizeof(((struct ours *)0)->field), sizeof(((theirs *)0)->field));
    check("CURLMsg in bytes", sizeof(struct ccurl_message), sizeof(CURLMsg));
    LAYOUT(ccurl_message, CURLMsg, msg)
    LAYOUT(ccurl_message, CURLMsg, easy_handle)
    LAYOUT(ccurl_message, CURLMsg, data.result)
    LAYOUT(ccurl_version_info, curl_version_info_data, age)
    LAYOUT(ccurl_version_info, curl_version_info_data, version)
    LAYOUT(ccurl_version_info, curl_version_info_data, version_num)
    LAYOUT(ccurl_version_info, curl_version_info_data, cainfo)
    LAYOUT(ccurl_version_info, curl_version_info_data, capath)

    // A constant that is newer than the header is not known to it: its preprocessor line is left out of the list.
#define CONSTANT(name) check(#name, C##name, name);
#include "constants.inc"
    return failures != 0;
}
