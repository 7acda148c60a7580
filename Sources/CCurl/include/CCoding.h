#ifndef CCODING_H
#define CCODING_H

#if defined(__linux__)

// Decoders of content codings (RFC 9110, section 8.4.1). Their libraries, usually the ones that libcurl itself uses,
// are found at run time.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static const uint32_t CCODING_GZIP = 1;
static const uint32_t CCODING_DEFLATE = 2;
static const uint32_t CCODING_BROTLI = 4;
static const uint32_t CCODING_ZSTD = 8;

// Finds the libraries. It must be called once, before the other functions.
//
// Returns the codings whose library was found, as a set of the bits above.
uint32_t ccoding_load(void);

struct ccoding;

// Creates a decoder of a coding whose library was found; NULL if no memory is left.
struct ccoding *ccoding_new(uint32_t coding);

void ccoding_free(struct ccoding *decoder);

// Decodes some bytes. All input is decoded when every byte is taken and the output is not full.
//
// input_count: the number of input bytes; afterwards, the number of bytes taken.
// output_count: the capacity of the output, 64 bytes or more; afterwards, the number of bytes written.
//
// Returns false if the input is malformed.
bool ccoding_decode(struct ccoding *decoder, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count);

// Returns whether the input so far is complete. Bytes after its end are ignored, as in browsers.
bool ccoding_is_at_end(const struct ccoding *decoder);

// Finds zlib for the functions below. It must be called once, before them.
bool cgzip_load(void);

struct cgzip;

// Creates a writer of gzip (RFC 1952), without a time and a name; NULL if no memory is left.
struct cgzip *cgzip_new(void);

void cgzip_free(struct cgzip *writer);

// Compresses some bytes. All input is compressed when every byte is taken and the output is not full.
//
// input_count: the number of input bytes; afterwards, the number of bytes taken.
// output_count: the capacity of the output in bytes; afterwards, the number of bytes written.
// is_last: whether no input follows.
//
// Returns false if no memory is left.
bool cgzip_write(struct cgzip *writer, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count, bool is_last);

#endif

#endif
