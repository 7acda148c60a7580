#ifndef CCURL_H
#define CCURL_H

#if defined(__linux__)

// The part of libcurl's stable interface (soname 4) that is used. Building needs no libcurl, because the functions are
// found at run time. Names of libcurl begin with an additional C here, so that this header does not conflict with
// libcurl's own.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CCoding.h"

// libcurl's enumerations are unsigned integers, except for CURLMcode, which has a negative value.
typedef uint32_t ccurl_code;
typedef int32_t ccurl_multi_code;
typedef uint32_t ccurl_option;
typedef uint32_t ccurl_multi_option;
typedef uint32_t ccurl_info;
typedef uint32_t ccurl_share_code;
typedef uint32_t ccurl_share_option;

// MARK: Constants

// CURLcode
static const ccurl_code CCURLE_OK = 0;
static const ccurl_code CCURLE_UNSUPPORTED_PROTOCOL = 1;
static const ccurl_code CCURLE_FAILED_INIT = 2;
static const ccurl_code CCURLE_URL_MALFORMAT = 3;
static const ccurl_code CCURLE_NOT_BUILT_IN = 4;
static const ccurl_code CCURLE_COULDNT_RESOLVE_PROXY = 5;
static const ccurl_code CCURLE_COULDNT_RESOLVE_HOST = 6;
static const ccurl_code CCURLE_COULDNT_CONNECT = 7;
static const ccurl_code CCURLE_WEIRD_SERVER_REPLY = 8;
static const ccurl_code CCURLE_HTTP2 = 16;
static const ccurl_code CCURLE_PARTIAL_FILE = 18;
static const ccurl_code CCURLE_WRITE_ERROR = 23;
static const ccurl_code CCURLE_READ_ERROR = 26;
static const ccurl_code CCURLE_OUT_OF_MEMORY = 27;
static const ccurl_code CCURLE_OPERATION_TIMEDOUT = 28;
static const ccurl_code CCURLE_SSL_CONNECT_ERROR = 35;
static const ccurl_code CCURLE_BAD_FUNCTION_ARGUMENT = 43;
static const ccurl_code CCURLE_INTERFACE_FAILED = 45;
static const ccurl_code CCURLE_UNKNOWN_OPTION = 48;
static const ccurl_code CCURLE_SETOPT_OPTION_SYNTAX = 49;
static const ccurl_code CCURLE_GOT_NOTHING = 52;
static const ccurl_code CCURLE_SSL_ENGINE_NOTFOUND = 53;
static const ccurl_code CCURLE_SSL_ENGINE_SETFAILED = 54;
static const ccurl_code CCURLE_SEND_ERROR = 55;
static const ccurl_code CCURLE_RECV_ERROR = 56;
static const ccurl_code CCURLE_SSL_CERTPROBLEM = 58;
static const ccurl_code CCURLE_SSL_CIPHER = 59;
static const ccurl_code CCURLE_PEER_FAILED_VERIFICATION = 60;
static const ccurl_code CCURLE_BAD_CONTENT_ENCODING = 61;
static const ccurl_code CCURLE_USE_SSL_FAILED = 64;
static const ccurl_code CCURLE_SEND_FAIL_REWIND = 65;
static const ccurl_code CCURLE_SSL_ENGINE_INITFAILED = 66;
static const ccurl_code CCURLE_LOGIN_DENIED = 67;
static const ccurl_code CCURLE_SSL_CACERT_BADFILE = 77;
static const ccurl_code CCURLE_SSL_SHUTDOWN_FAILED = 80;
static const ccurl_code CCURLE_SSL_CRL_BADFILE = 82;
static const ccurl_code CCURLE_SSL_ISSUER_ERROR = 83;
static const ccurl_code CCURLE_NO_CONNECTION_AVAILABLE = 89;
static const ccurl_code CCURLE_SSL_PINNEDPUBKEYNOTMATCH = 90;
static const ccurl_code CCURLE_SSL_INVALIDCERTSTATUS = 91;
static const ccurl_code CCURLE_HTTP2_STREAM = 92;
static const ccurl_code CCURLE_RECURSIVE_API_CALL = 93;
static const ccurl_code CCURLE_PROXY = 97;
static const ccurl_code CCURLE_SSL_CLIENTCERT = 98;
static const ccurl_code CCURLE_TOO_LARGE = 100;

// CURLMcode
static const ccurl_multi_code CCURLM_OK = 0;

// CURLoption
static const ccurl_option CCURLOPT_SSLVERSION = 32;
static const ccurl_option CCURLOPT_VERBOSE = 41;
static const ccurl_option CCURLOPT_NOPROGRESS = 43;
static const ccurl_option CCURLOPT_NOBODY = 44;
static const ccurl_option CCURLOPT_FAILONERROR = 45;
static const ccurl_option CCURLOPT_UPLOAD = 46;
static const ccurl_option CCURLOPT_SSL_VERIFYPEER = 64;
static const ccurl_option CCURLOPT_FRESH_CONNECT = 74;
static const ccurl_option CCURLOPT_FORBID_REUSE = 75;
static const ccurl_option CCURLOPT_SSL_VERIFYHOST = 81;
static const ccurl_option CCURLOPT_HTTP_VERSION = 84;
static const ccurl_option CCURLOPT_BUFFERSIZE = 98;
static const ccurl_option CCURLOPT_NOSIGNAL = 99;
static const ccurl_option CCURLOPT_HTTPAUTH = 107;
static const ccurl_option CCURLOPT_PROXYAUTH = 111;
static const ccurl_option CCURLOPT_CONNECTTIMEOUT_MS = 156;
static const ccurl_option CCURLOPT_PROTOCOLS = 181;
static const ccurl_option CCURLOPT_PATH_AS_IS = 234;
static const ccurl_option CCURLOPT_PIPEWAIT = 237;
static const ccurl_option CCURLOPT_CA_CACHE_TIMEOUT = 321;
static const ccurl_option CCURLOPT_QUICK_EXIT = 322;
static const ccurl_option CCURLOPT_WRITEDATA = 10001;
static const ccurl_option CCURLOPT_URL = 10002;
static const ccurl_option CCURLOPT_PROXY = 10004;
static const ccurl_option CCURLOPT_READDATA = 10009;
static const ccurl_option CCURLOPT_ERRORBUFFER = 10010;
static const ccurl_option CCURLOPT_HTTPHEADER = 10023;
static const ccurl_option CCURLOPT_SSLCERT = 10025;
static const ccurl_option CCURLOPT_KEYPASSWD = 10026;
static const ccurl_option CCURLOPT_HEADERDATA = 10029;
static const ccurl_option CCURLOPT_CUSTOMREQUEST = 10036;
static const ccurl_option CCURLOPT_XFERINFODATA = 10057;
static const ccurl_option CCURLOPT_CAINFO = 10065;
static const ccurl_option CCURLOPT_SSLKEY = 10087;
static const ccurl_option CCURLOPT_DEBUGDATA = 10095;
static const ccurl_option CCURLOPT_CAPATH = 10097;
static const ccurl_option CCURLOPT_SHARE = 10100;
static const ccurl_option CCURLOPT_PRIVATE = 10103;
static const ccurl_option CCURLOPT_SSL_CTX_DATA = 10109;
static const ccurl_option CCURLOPT_SOCKOPTDATA = 10149;
static const ccurl_option CCURLOPT_SEEKDATA = 10168;
static const ccurl_option CCURLOPT_USERNAME = 10173;
static const ccurl_option CCURLOPT_NOPROXY = 10177;
static const ccurl_option CCURLOPT_CLOSESOCKETDATA = 10209;
static const ccurl_option CCURLOPT_PINNEDPUBLICKEY = 10230;
static const ccurl_option CCURLOPT_PREREQDATA = 10313;
static const ccurl_option CCURLOPT_WRITEFUNCTION = 20011;
static const ccurl_option CCURLOPT_READFUNCTION = 20012;
static const ccurl_option CCURLOPT_HEADERFUNCTION = 20079;
static const ccurl_option CCURLOPT_DEBUGFUNCTION = 20094;
static const ccurl_option CCURLOPT_SSL_CTX_FUNCTION = 20108;
static const ccurl_option CCURLOPT_SOCKOPTFUNCTION = 20148;
static const ccurl_option CCURLOPT_SEEKFUNCTION = 20167;
static const ccurl_option CCURLOPT_CLOSESOCKETFUNCTION = 20208;
static const ccurl_option CCURLOPT_XFERINFOFUNCTION = 20219;
static const ccurl_option CCURLOPT_PREREQFUNCTION = 20312;
static const ccurl_option CCURLOPT_INFILESIZE_LARGE = 30115;

// CURLINFO
static const ccurl_info CCURLINFO_PRIVATE = 1048597;
static const ccurl_info CCURLINFO_REQUEST_SIZE = 2097164;
static const ccurl_info CCURLINFO_PROXYAUTH_AVAIL = 2097176;
static const ccurl_info CCURLINFO_OS_ERRNO = 2097177;
static const ccurl_info CCURLINFO_NUM_CONNECTS = 2097178;
static const ccurl_info CCURLINFO_TLS_SSL_PTR = 4194349;
static const ccurl_info CCURLINFO_SIZE_UPLOAD_T = 6291463;
static const ccurl_info CCURLINFO_SIZE_DOWNLOAD_T = 6291464;
static const ccurl_info CCURLINFO_NAMELOOKUP_TIME_T = 6291507;
static const ccurl_info CCURLINFO_CONNECT_TIME_T = 6291508;
static const ccurl_info CCURLINFO_STARTTRANSFER_TIME_T = 6291510;
static const ccurl_info CCURLINFO_APPCONNECT_TIME_T = 6291512;

// curl_infotype
static const uint32_t CCURLINFO_TEXT = 0;
static const uint32_t CCURLINFO_DATA_IN = 3;

// CURLMoption, and a value of CURLMOPT_PIPELINING
static const ccurl_multi_option CCURLMOPT_PIPELINING = 3;
static const ccurl_multi_option CCURLMOPT_MAXCONNECTS = 6;
static const long CCURLPIPE_NOTHING = 0;

// CURLSHoption, and a value of CURLSHOPT_SHARE
static const ccurl_share_option CCURLSHOPT_SHARE = 1;
static const int CCURL_LOCK_DATA_SSL_SESSION = 4;

// Values of options, and results of callbacks
static const long CCURLAUTH_BASIC = 1;
static const long CCURLAUTH_DIGEST = 2;
static const int CCURL_ERROR_SIZE = 256;
static const long CCURL_GLOBAL_DEFAULT = 3;
static const long CCURL_HTTP_VERSION_2TLS = 4;
static const long CCURL_SSLVERSION_TLSv1_2 = 6;
static const long CCURL_SSLVERSION_TLSv1_3 = 7;
static const long CCURLPROTO_HTTP = 1;
static const long CCURLPROTO_HTTPS = 2;
static const int CCURLPAUSE_RECV = 1;
static const int CCURLPAUSE_SEND = 4;
static const uint32_t CCURLSSLBACKEND_OPENSSL = 1;
static const int CCURL_SOCKOPT_OK = 0;
static const int CCURL_PREREQFUNC_OK = 0;
static const int CCURL_PREREQFUNC_ABORT = 1;
static const size_t CCURL_READFUNC_ABORT = 0x10000000;
static const size_t CCURL_READFUNC_PAUSE = 0x10000001;
static const size_t CCURL_WRITEFUNC_PAUSE = 0x10000001;
static const int CCURL_SEEKFUNC_OK = 0;
static const int CCURL_SEEKFUNC_FAIL = 1;

// MARK: Structs

// The kinds of CURLMsg. There is only one.
static const uint32_t CCURLMSG_DONE = 1;

struct ccurl_message {
    uint32_t msg;
    void *easy_handle;
    union {
        void *whatever;
        ccurl_code result;
    } data;
};

// The beginning of curl_version_info_data, as in its seventh version (libcurl 7.70).
struct ccurl_version_info {
    uint32_t age;
    const char *version;
    uint32_t version_num;
    const char *host;
    int features;
    const char *ssl_version;
    long ssl_version_num;
    const char *libz_version;
    const char *const *protocols;
    const char *ares;
    int ares_num;
    const char *libidn;
    int iconv_ver_num;
    const char *libssh_version;
    uint32_t brotli_ver_num;
    const char *brotli_version;
    uint32_t nghttp2_ver_num;
    const char *nghttp2_version;
    const char *quic_version;
    const char *cainfo;
    const char *capath;
};

// curl_tlssessioninfo
struct ccurl_tls_session {
    uint32_t backend;
    void *internals;
};

// MARK: Functions

struct CURLMsg;
struct curl_slist;
struct curl_version_info_data;
struct curl_waitfd;

// Lists all functions: F(result, name, parameters) for each.
#define CCURL_FUNCTIONS(F) \
    F(ccurl_code, global_init, (long flags)) \
    F(struct curl_version_info_data *, version_info, (uint32_t age)) \
    F(void *, easy_init, (void)) \
    F(void, easy_cleanup, (void *easy)) \
    F(void, easy_reset, (void *easy)) \
    F(ccurl_code, easy_setopt, (void *easy, ccurl_option option, ...)) \
    F(ccurl_code, easy_getinfo, (void *easy, ccurl_info info, ...)) \
    F(ccurl_code, easy_pause, (void *easy, int directions)) \
    F(const char *, easy_strerror, (ccurl_code code)) \
    F(void *, multi_init, (void)) \
    F(ccurl_multi_code, multi_cleanup, (void *multi)) \
    F(ccurl_multi_code, multi_setopt, (void *multi, ccurl_multi_option option, ...)) \
    F(ccurl_multi_code, multi_add_handle, (void *multi, void *easy)) \
    F(ccurl_multi_code, multi_remove_handle, (void *multi, void *easy)) \
    F(ccurl_multi_code, multi_perform, (void *multi, int *running)) \
    F(struct CURLMsg *, multi_info_read, (void *multi, int *left)) \
    F(ccurl_multi_code, multi_poll, (void *multi, struct curl_waitfd *extra, unsigned int count, int timeout, int *ready)) \
    F(ccurl_multi_code, multi_wakeup, (void *multi)) \
    F(const char *, multi_strerror, (ccurl_multi_code code)) \
    F(void *, share_init, (void)) \
    F(ccurl_share_code, share_cleanup, (void *share)) \
    F(ccurl_share_code, share_setopt, (void *share, ccurl_share_option option, ...)) \
    F(struct curl_slist *, slist_append, (struct curl_slist *list, const char *text)) \
    F(void, slist_free_all, (struct curl_slist *list))

#define CCURL_POINTER(result, name, parameters) result (*name) parameters;
struct ccurl_functions {
    CCURL_FUNCTIONS(CCURL_POINTER)
};
#undef CCURL_POINTER

// The functions. They are null pointers before `ccurl_load` has succeeded.
extern struct ccurl_functions ccurl;

// Fills the table above, once for the process.
//
// path: the path of the library; NULL for `libcurl.so.4`, which is the library that Foundation has loaded, otherwise
// the system's.
// minimum: the minimum version, such as 0x075100 for 7.81.0.
// problem: a buffer for the reason of a failure, terminated by a zero byte; can be NULL if its size is 0.
//
// Returns whether the table was filled. If not, it is unchanged.
bool ccurl_load(const char *path, uint32_t minimum, char *problem, size_t problem_size);

// Returns the library that the environment variable `EASYNETWORK_LIBCURL` names, for `ccurl_load`. NULL without the
// variable, and in a program with other rights than its user's (set-user-id), where the user must not choose what is
// loaded.
const char *ccurl_environment_path(void);

// MARK: Wrappers

// Swift cannot call variadic functions, so there is one wrapper for each type of argument.

typedef size_t (*ccurl_transfer_function)(char *bytes, size_t size, size_t count, void *context);
typedef int (*ccurl_seek_function)(void *context, int64_t offset, int origin);
typedef int (*ccurl_connected_function)(void *context, char *address, char *local_address, int port, int local_port);
typedef int (*ccurl_progress_function)(
    void *context, int64_t download_total, int64_t downloaded, int64_t upload_total, int64_t uploaded);
typedef int (*ccurl_debug_function)(void *easy, uint32_t kind, char *bytes, size_t count, void *context);
typedef ccurl_code (*ccurl_securing_function)(void *easy, void *tls, void *context);
typedef int (*ccurl_opened_function)(void *context, int descriptor, uint32_t purpose);
typedef int (*ccurl_close_function)(void *context, int descriptor);

static inline ccurl_code ccurl_set_long(void *easy, ccurl_option option, long value) {
    return ccurl.easy_setopt(easy, option, value);
}

static inline ccurl_code ccurl_set_offset(void *easy, ccurl_option option, int64_t value) {
    return ccurl.easy_setopt(easy, option, value);
}

// libcurl copies the string, except for CURLOPT_POSTFIELDS, which must not be set with this function.
static inline ccurl_code ccurl_set_string(void *easy, ccurl_option option, const char *value) {
    return ccurl.easy_setopt(easy, option, value);
}

static inline ccurl_code ccurl_set_pointer(void *easy, ccurl_option option, void *value) {
    return ccurl.easy_setopt(easy, option, value);
}

static inline ccurl_code ccurl_set_list(void *easy, ccurl_option option, struct curl_slist *value) {
    return ccurl.easy_setopt(easy, option, value);
}

// Sets CURLOPT_HEADERFUNCTION, CURLOPT_WRITEFUNCTION or CURLOPT_READFUNCTION.
static inline ccurl_code ccurl_set_transfer_function(void *easy, ccurl_option option, ccurl_transfer_function value) {
    return ccurl.easy_setopt(easy, option, value);
}

static inline ccurl_code ccurl_set_seek_function(void *easy, ccurl_seek_function value) {
    return ccurl.easy_setopt(easy, CCURLOPT_SEEKFUNCTION, value);
}

// Sets CURLOPT_PREREQFUNCTION, which is called when there is a connection, before the request is sent.
static inline ccurl_code ccurl_set_connected_function(void *easy, ccurl_connected_function value) {
    return ccurl.easy_setopt(easy, CCURLOPT_PREREQFUNCTION, value);
}

// Sets CURLOPT_DEBUGFUNCTION, which is called with CURLOPT_VERBOSE. For a body, it receives the bytes as they arrived;
// for a message, a line. It returns 0.
static inline ccurl_code ccurl_set_debug_function(void *easy, ccurl_debug_function value) {
    return ccurl.easy_setopt(easy, CCURLOPT_DEBUGFUNCTION, value);
}

// Sets CURLOPT_SSL_CTX_FUNCTION, which is called when there is a connection, before the TLS handshake.
static inline ccurl_code ccurl_set_securing_function(void *easy, ccurl_securing_function value) {
    return ccurl.easy_setopt(easy, CCURLOPT_SSL_CTX_FUNCTION, value);
}

// Sets CURLOPT_SOCKOPTFUNCTION, which is called with a new socket.
static inline ccurl_code ccurl_set_opened_function(void *easy, ccurl_opened_function value) {
    return ccurl.easy_setopt(easy, CCURLOPT_SOCKOPTFUNCTION, value);
}

// Sets CURLOPT_XFERINFOFUNCTION, which is called now and then, and a last time at the end, before libcurl releases the
// connection. It returns 0.
static inline ccurl_code ccurl_set_progress_function(void *easy, ccurl_progress_function value) {
    return ccurl.easy_setopt(easy, CCURLOPT_XFERINFOFUNCTION, value);
}

// Sets CURLOPT_CLOSESOCKETFUNCTION, which closes the socket and returns 0.
static inline ccurl_code ccurl_set_close_function(void *easy, ccurl_close_function value) {
    return ccurl.easy_setopt(easy, CCURLOPT_CLOSESOCKETFUNCTION, value);
}

// Returns whether the TLS library holds unread input of the handle's connection. False without a connection, which most
// callbacks have, and with libraries other than OpenSSL and its relatives.
bool ccurl_tls_has_pending(void *easy);

// Returns whether the peer has not closed TLS on the handle's connection. The same limits apply.
bool ccurl_tls_is_open(void *easy);

// Returns whether libcurl has a default folder of authorities beside a default file, and whether the next function can
// add that folder, which it can with OpenSSL alone.
bool ccurl_tls_can_add_default_folder(void);

// Adds libcurl's default folder of authorities to the context that CURLOPT_SSL_CTX_FUNCTION receives.
void ccurl_tls_add_default_folder(void *context);

static inline ccurl_code ccurl_get_offset(void *easy, ccurl_info info, int64_t *value) {
    return ccurl.easy_getinfo(easy, info, value);
}

static inline ccurl_code ccurl_get_long(void *easy, ccurl_info info, long *value) {
    return ccurl.easy_getinfo(easy, info, value);
}

// Returns the pointer that was set as CURLOPT_PRIVATE.
static inline void *ccurl_get_private(void *easy) {
    void *value = NULL;
    ccurl.easy_getinfo(easy, CCURLINFO_PRIVATE, &value);
    return value;
}

static inline ccurl_multi_code ccurl_multi_set_long(void *multi, ccurl_multi_option option, long value) {
    return ccurl.multi_setopt(multi, option, value);
}

static inline ccurl_code ccurl_global_init(long flags) { return ccurl.global_init(flags); }

// Makes CURLOPT_DEBUGFUNCTION also receive messages about HTTP/2 frames. Has no effect before libcurl 8.3.
void ccurl_trace_http2(void);

// Returns the version of the loaded library, such as 0x080100 for 8.1.0.
static inline uint32_t ccurl_version(void) {
    return ((struct ccurl_version_info *)ccurl.version_info(0))->version_num;
}

static inline void *ccurl_easy_init(void) { return ccurl.easy_init(); }
static inline void ccurl_easy_cleanup(void *easy) { ccurl.easy_cleanup(easy); }
static inline void ccurl_easy_reset(void *easy) { ccurl.easy_reset(easy); }
static inline ccurl_code ccurl_easy_pause(void *easy, int directions) { return ccurl.easy_pause(easy, directions); }
static inline const char *ccurl_easy_strerror(ccurl_code code) { return ccurl.easy_strerror(code); }

static inline void *ccurl_multi_init(void) { return ccurl.multi_init(); }
static inline void ccurl_multi_cleanup(void *multi) { ccurl.multi_cleanup(multi); }
static inline ccurl_multi_code ccurl_multi_add_handle(void *multi, void *easy) {
    return ccurl.multi_add_handle(multi, easy);
}
static inline void ccurl_multi_remove_handle(void *multi, void *easy) { ccurl.multi_remove_handle(multi, easy); }
static inline ccurl_multi_code ccurl_multi_perform(void *multi, int *running) {
    return ccurl.multi_perform(multi, running);
}
static inline const struct ccurl_message *ccurl_multi_info_read(void *multi, int *left) {
    return (const struct ccurl_message *)ccurl.multi_info_read(multi, left);
}
// Waits only for the handle's own descriptors.
static inline ccurl_multi_code ccurl_multi_poll(void *multi, int milliseconds) {
    return ccurl.multi_poll(multi, NULL, 0, milliseconds, NULL);
}
static inline ccurl_multi_code ccurl_multi_wakeup(void *multi) { return ccurl.multi_wakeup(multi); }
static inline const char *ccurl_multi_strerror(ccurl_multi_code code) { return ccurl.multi_strerror(code); }

// Returns an object that shares the TLS sessions of the handles that have it as CURLOPT_SHARE, for one thread; NULL if no
// memory is left.
static inline void *ccurl_session_share_init(void) {
    void *share = ccurl.share_init();
    if (share) { ccurl.share_setopt(share, CCURLSHOPT_SHARE, CCURL_LOCK_DATA_SSL_SESSION); }
    return share;
}
static inline void ccurl_share_cleanup(void *share) { ccurl.share_cleanup(share); }

static inline struct curl_slist *ccurl_slist_append(struct curl_slist *list, const char *text) {
    return ccurl.slist_append(list, text);
}
static inline void ccurl_slist_free_all(struct curl_slist *list) { ccurl.slist_free_all(list); }

#endif

#endif
