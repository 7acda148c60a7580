#if defined(__linux__)

#define _GNU_SOURCE
#include "CCoding.h"

#include <dlfcn.h>
#include <stdlib.h>

// MARK: zlib (its interface has been the same since 1.0)

struct zlib_stream {
    const uint8_t *next_in;
    unsigned int avail_in;
    unsigned long total_in;
    uint8_t *next_out;
    unsigned int avail_out;
    unsigned long total_out;
    const char *msg;
    void *state;
    void *(*zalloc)(void *, unsigned int, unsigned int);
    void (*zfree)(void *, void *);
    void *opaque;
    int data_type;
    unsigned long adler;
    unsigned long reserved;
};

enum { ZLIB_NO_FLUSH = 0, ZLIB_OK = 0, ZLIB_STREAM_END = 1, ZLIB_BUF_ERROR = -5 };
// Window bits of the formats, each with the largest window.
enum { ZLIB_WRAPPED = 15, ZLIB_BARE = -15, ZLIB_GZIP = 15 + 16 };

static int (*zlib_init)(struct zlib_stream *, int window_bits, const char *version, int size);
static int (*zlib_inflate)(struct zlib_stream *, int flush);
static int (*zlib_reset)(struct zlib_stream *);
static int (*zlib_end)(struct zlib_stream *);

// MARK: brotli

enum { BROTLI_ERROR = 0, BROTLI_SUCCESS = 1 };

static void *(*brotli_new)(void *, void *, void *);
static int (*brotli_decode)(void *, size_t *, const uint8_t **, size_t *, uint8_t **, size_t *);
static void (*brotli_free)(void *);

// MARK: zstd

struct zstd_input { const void *bytes; size_t count, position; };
struct zstd_output { void *bytes; size_t count, position; };
// A window must not exceed 8 MiB (RFC 9659).
enum { ZSTD_WINDOW_LOG_MAX = 100, ZSTD_WINDOW_LOG = 23 };

static void *(*zstd_new)(void);
static size_t (*zstd_free)(void *);
static size_t (*zstd_decode)(void *, struct zstd_output *, struct zstd_input *);
static size_t (*zstd_set)(void *, int parameter, int value);
static unsigned int (*zstd_is_error)(size_t);

static bool find(void *library, const char *name, void *function) {
    if (!library) { return false; }
    *(void **)function = dlsym(library, name);
    return *(void **)function != NULL;
}

uint32_t ccoding_load(void) {
    uint32_t there = 0;
    // The libraries are never closed, because the process might have other users of them.
    void *zlib = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    if (find(zlib, "inflateInit2_", &zlib_init) && find(zlib, "inflate", &zlib_inflate)
        && find(zlib, "inflateReset", &zlib_reset) && find(zlib, "inflateEnd", &zlib_end)) {
        there |= CCODING_GZIP | CCODING_DEFLATE;
    }
    void *brotli = dlopen("libbrotlidec.so.1", RTLD_NOW | RTLD_LOCAL);
    if (find(brotli, "BrotliDecoderCreateInstance", &brotli_new)
        && find(brotli, "BrotliDecoderDecompressStream", &brotli_decode)
        && find(brotli, "BrotliDecoderDestroyInstance", &brotli_free)) {
        there |= CCODING_BROTLI;
    }
    void *zstd = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (find(zstd, "ZSTD_createDCtx", &zstd_new) && find(zstd, "ZSTD_freeDCtx", &zstd_free)
        && find(zstd, "ZSTD_decompressStream", &zstd_decode) && find(zstd, "ZSTD_DCtx_setParameter", &zstd_set)
        && find(zstd, "ZSTD_isError", &zstd_is_error)) {
        there |= CCODING_ZSTD;
    }
    return there;
}

// MARK: Decoders

struct ccoding {
    uint32_t coding;
    bool is_at_end;
    // Whether other bytes follow the end. They are ignored.
    bool ignores;
    struct zlib_stream zlib;
    bool has_zlib;
    // The first bytes of "deflate". They distinguish zlib's format (RFC 1950) from bare DEFLATE, because servers send
    // both.
    uint8_t start[2];
    size_t start_count;
    void *other;
};

static bool begin_zlib(struct ccoding *decoder, int window_bits) {
    // zlib checks only the first digit of the version.
    decoder->has_zlib = zlib_init(&decoder->zlib, window_bits, "1.2.0", (int)sizeof(decoder->zlib)) == ZLIB_OK;
    return decoder->has_zlib;
}

struct ccoding *ccoding_new(uint32_t coding) {
    struct ccoding *decoder = calloc(1, sizeof(*decoder));
    if (!decoder) { return NULL; }
    decoder->coding = coding;
    bool is_made = coding == CCODING_DEFLATE;
    if (coding == CCODING_GZIP) {
        is_made = begin_zlib(decoder, ZLIB_GZIP);
    } else if (coding == CCODING_BROTLI) {
        is_made = (decoder->other = brotli_new(NULL, NULL, NULL)) != NULL;
    } else if (coding == CCODING_ZSTD) {
        is_made = (decoder->other = zstd_new()) != NULL;
        if (is_made) { zstd_set(decoder->other, ZSTD_WINDOW_LOG_MAX, ZSTD_WINDOW_LOG); }
    }
    if (is_made) { return decoder; }
    free(decoder);
    return NULL;
}

void ccoding_free(struct ccoding *decoder) {
    if (!decoder) { return; }
    if (decoder->has_zlib) { zlib_end(&decoder->zlib); }
    if (decoder->other && decoder->coding == CCODING_BROTLI) { brotli_free(decoder->other); }
    if (decoder->other && decoder->coding == CCODING_ZSTD) { zstd_free(decoder->other); }
    free(decoder);
}

// The counts belong to a piece of a response, so they fit into 32 bits.
static bool inflate(struct ccoding *decoder, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count) {
    decoder->zlib.next_in = input;
    decoder->zlib.avail_in = (unsigned int)*input_count;
    decoder->zlib.next_out = output;
    decoder->zlib.avail_out = (unsigned int)*output_count;
    int result = zlib_inflate(&decoder->zlib, ZLIB_NO_FLUSH);
    *input_count -= decoder->zlib.avail_in;
    *output_count -= decoder->zlib.avail_out;
    decoder->is_at_end = result == ZLIB_STREAM_END;
    return result == ZLIB_OK || result == ZLIB_STREAM_END || result == ZLIB_BUF_ERROR;
}

static bool inflate_start(struct ccoding *decoder, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count) {
    size_t taken = 0;
    while (taken < *input_count && decoder->start_count < 2) { decoder->start[decoder->start_count++] = input[taken++]; }
    *input_count = taken;
    if (decoder->start_count < 2) {
        *output_count = 0;
        return true;
    }
    bool is_wrapped = (decoder->start[0] & 0x0F) == 8 && (decoder->start[0] * 256 + decoder->start[1]) % 31 == 0;
    if (!begin_zlib(decoder, is_wrapped ? ZLIB_WRAPPED : ZLIB_BARE)) { return false; }
    // The output of two bytes fits, so zlib takes both.
    size_t count = 2;
    return inflate(decoder, decoder->start, &count, output, output_count);
}

bool ccoding_decode(struct ccoding *decoder, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count) {
    if (decoder->coding == CCODING_ZSTD) {
        struct zstd_input in = {input, *input_count, 0};
        struct zstd_output out = {output, *output_count, 0};
        // Without input, zstd would report that a new frame must begin.
        if (decoder->is_at_end && in.count == 0) {
            *output_count = 0;
            return true;
        }
        size_t result = zstd_decode(decoder->other, &out, &in);
        *input_count = in.position;
        *output_count = out.position;
        decoder->is_at_end = result == 0;
        return !zstd_is_error(result);
    }
    if (decoder->is_at_end) {
        // Another member can follow (RFC 1952, section 2.2).
        bool is_member = decoder->coding == CCODING_GZIP && !decoder->ignores && *input_count > 0 && input[0] == 0x1F;
        if (!is_member) {
            decoder->ignores = decoder->ignores || *input_count > 0;
            *output_count = 0;
            return true;
        }
        if (zlib_reset(&decoder->zlib) != ZLIB_OK) { return false; }
    }
    if (decoder->coding == CCODING_BROTLI) {
        size_t in_left = *input_count, out_left = *output_count;
        int result = brotli_decode(decoder->other, &in_left, &input, &out_left, &output, NULL);
        *input_count -= in_left;
        *output_count -= out_left;
        decoder->is_at_end = result == BROTLI_SUCCESS;
        return result != BROTLI_ERROR;
    }
    if (decoder->coding == CCODING_DEFLATE && !decoder->has_zlib) {
        return inflate_start(decoder, input, input_count, output, output_count);
    }
    return inflate(decoder, input, input_count, output, output_count);
}

bool ccoding_is_at_end(const struct ccoding *decoder) {
    return decoder->is_at_end;
}

// MARK: Gzip

enum { ZLIB_FINISH = 4, ZLIB_DEFLATED = 8, ZLIB_LEVEL = -1, ZLIB_MEMORY = 8, ZLIB_STRATEGY = 0 };

static int (*zlib_deflate_init)(struct zlib_stream *, int level, int method, int window_bits, int memory, int strategy, const char *version, int size);
static int (*zlib_deflate)(struct zlib_stream *, int flush);
static int (*zlib_deflate_end)(struct zlib_stream *);

bool cgzip_load(void) {
    void *zlib = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    return find(zlib, "deflateInit2_", &zlib_deflate_init) && find(zlib, "deflate", &zlib_deflate)
        && find(zlib, "deflateEnd", &zlib_deflate_end);
}

struct cgzip {
    struct zlib_stream zlib;
    bool is_at_end;
};

struct cgzip *cgzip_new(void) {
    struct cgzip *writer = calloc(1, sizeof(*writer));
    if (!writer) { return NULL; }
    int result = zlib_deflate_init(
        &writer->zlib, ZLIB_LEVEL, ZLIB_DEFLATED, ZLIB_GZIP, ZLIB_MEMORY, ZLIB_STRATEGY, "1.2.0", (int)sizeof(writer->zlib));
    if (result == ZLIB_OK) { return writer; }
    free(writer);
    return NULL;
}

void cgzip_free(struct cgzip *writer) {
    if (!writer) { return; }
    zlib_deflate_end(&writer->zlib);
    free(writer);
}

bool cgzip_write(struct cgzip *writer, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count, bool is_last) {
    if (writer->is_at_end) {
        *output_count = 0;
        return *input_count == 0;
    }
    // zlib counts bytes in 32 bits.
    const size_t most = 1 << 30;
    size_t taken = *input_count < most ? *input_count : most;
    size_t room = *output_count < most ? *output_count : most;
    writer->zlib.next_in = input;
    writer->zlib.avail_in = (unsigned int)taken;
    writer->zlib.next_out = output;
    writer->zlib.avail_out = (unsigned int)room;
    int result = zlib_deflate(&writer->zlib, is_last && taken == *input_count ? ZLIB_FINISH : ZLIB_NO_FLUSH);
    *input_count = taken - writer->zlib.avail_in;
    *output_count = room - writer->zlib.avail_out;
    writer->is_at_end = result == ZLIB_STREAM_END;
    return result == ZLIB_OK || result == ZLIB_STREAM_END || result == ZLIB_BUF_ERROR;
}

#endif
