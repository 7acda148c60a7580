#ifndef CCODING_H
#define CCODING_H

#if defined(__linux__)

// Decoders of content codings (RFC 9110, section 8.4.1). Their libraries, usually those that libcurl itself uses, are found
// at run time.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static const uint32_t CCODING_GZIP = 1;
static const uint32_t CCODING_DEFLATE = 2;
static const uint32_t CCODING_BROTLI = 4;
static const uint32_t CCODING_ZSTD = 8;

// Finds the libraries. Called once, before the other functions.
//
// Returns the codings whose library was found, as a set of the bits above.
uint32_t ccoding_load(void);

struct ccoding;

// Makes a decoder of a coding whose library was found; NULL without memory.
struct ccoding *ccoding_new(uint32_t coding);

void ccoding_free(struct ccoding *decoder);

// Decodes some bytes. Everything is decoded when all input is taken and the output is not full.
//
// input_count: the bytes of input; afterwards how many of them were taken.
// output_count: the room for output, 64 or more; afterwards how many bytes were written.
//
// Returns false if the input is malformed.
bool ccoding_decode(struct ccoding *decoder, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count);

// Whether the input so far is whole. Bytes after its end are ignored, as in browsers.
bool ccoding_is_at_end(const struct ccoding *decoder);

// Finds zlib for the functions below. Called once, before them.
bool cgzip_load(void);

struct cgzip;

// Makes a writer of gzip (RFC 1952), without a time and a name; NULL without memory.
struct cgzip *cgzip_new(void);

void cgzip_free(struct cgzip *writer);

// Compresses some bytes. Everything is written when all input is taken and the output is not full.
//
// input_count: the bytes of input; afterwards how many of them were taken.
// output_count: the room for output; afterwards how many bytes were written.
// is_last: whether nothing follows this input.
//
// Returns false without memory.
bool cgzip_write(struct cgzip *writer, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count, bool is_last);

#endif

#endif
