#ifndef CCODING_H
#define CCODING_H

#if defined(__linux__)

// Decoders of content codings (RFC 9110, section 8.4.1). The libraries are found at run time, as libcurl is: those that
// libcurl itself depends on, as a rule.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static const uint32_t CCODING_GZIP = 1;
static const uint32_t CCODING_DEFLATE = 2;
static const uint32_t CCODING_BROTLI = 4;
static const uint32_t CCODING_ZSTD = 8;

// Finds the libraries. Called once, before the other functions.
//
// Returns the codings whose library is there, as a set of the bits above.
uint32_t ccoding_load(void);

struct ccoding;

// A decoder of one coding, whose library is there; NULL without memory.
struct ccoding *ccoding_new(uint32_t coding);

void ccoding_free(struct ccoding *decoder);

// Decodes some bytes. All is done when all input is taken and the output is not full.
//
// input_count: how many bytes there are; afterwards how many of them were taken.
// output_count: how much room there is, 64 or more; afterwards how many bytes were written.
//
// Returns false when the input is malformed.
bool ccoding_decode(struct ccoding *decoder, const uint8_t *input, size_t *input_count, uint8_t *output, size_t *output_count);

// Whether the input so far is whole. What follows its end is ignored, as browsers do.
bool ccoding_is_at_end(const struct ccoding *decoder);

#endif

#endif
