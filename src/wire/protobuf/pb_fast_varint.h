/*
 * pb_fast_varint.h: varints of at most eight bytes, read at once instead of byte by byte: for readers of very many small
 * messages (xspace_args.c). The caller vouches that eight bytes can be read; whatever is longer is for pb.h.
 */
#ifndef WIRE_PB_FAST_VARINT_H
#define WIRE_PB_FAST_VARINT_H

#include "wire/protobuf/pb.h"

#define PB_FAST_VARINT_BYTES 8
#define PB_FAST_VARINT_STOPS 0x8080808080808080ull

/* Returns whether the processor has a fast instruction to gather bits (pext); older AMD
 * processors do it in microcode. */
static inline bool pb_fast_varint_has_pext(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("bmi2") && !__builtin_cpu_is("amdfam15h") &&
	       !__builtin_cpu_is("amdfam17h");
#else
	return false;
#endif
}

/* The bits of a word that `bits` has, side by side: the lower seven of the first bytes, or of all. `gathers` is a
 * constant, so that one of the ways remains. */
OW_ALWAYS_INLINE uint64_t pb_fast_pick(uint64_t word, uint64_t bits, bool gathers)
{
#if defined(__x86_64__)
	if (gathers) {
		uint64_t picked;

		__asm__("pext %2, %1, %0" : "=r"(picked) : "r"(word), "rm"(bits));
		return picked;
	}
#endif
	(void)gathers;
	word &= bits;
	word = (word & 0x007f007f007f007full) | (word & 0x7f007f007f007f00ull) >> 1;
	word = (word & 0x00003fff00003fffull) | (word & 0x3fff00003fff0000ull) >> 2;
	return (word & 0x000000000fffffffull) | (word & 0x0fffffff00000000ull) >> 4;
}

OW_ALWAYS_INLINE uint64_t pb_fast_gather(uint64_t word, bool gathers)
{
	return pb_fast_pick(word, ~PB_FAST_VARINT_STOPS, gathers);
}

/* Reads a varint; `next` is NULL if it has more than eight bytes. */
OW_ALWAYS_INLINE struct pb_varint pb_fast_varint(const uint8_t *at, bool gathers)
{
	uint64_t word = pb_load64(at), stop = ~word & PB_FAST_VARINT_STOPS;

	if (OW_UNLIKELY(!stop))
		return (struct pb_varint){ NULL, 0 };
	return (struct pb_varint){ at + (__builtin_ctzll(stop) >> 3) + 1,
				   pb_fast_gather(word & (stop ^ (stop - 1)), gathers) };
}

#endif
