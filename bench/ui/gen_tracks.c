/*
 * gen_tracks.c: writes a Chrome trace with a given number of events on a given number of tracks, for bench/ui.
 * Half of the events are children of the other half, so each track has two depths. With `bursty`, a track is busy in bursts of
 * 2,000 short events and idle in between; with `even`, events follow each other at random distances.
 *
 *     gen_tracks EVENTS TRACKS even|bursty > FILE
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES 400
#define BURST 2000

static uint64_t state = 88172645463325252ull;

static uint64_t below(uint64_t limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % limit;
}

static void write_event(uint64_t track, uint64_t ts_ns, uint64_t dur_ns)
{
	uint64_t name = below(20) < 16 ? below(20) : below(NAMES);

	printf(",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%" PRIu64 ",\"ts\":%" PRIu64 ".%03" PRIu64
	       ",\"dur\":%" PRIu64 ".%03" PRIu64 ",\"name\":\"layer_%" PRIu64 "/op_%" PRIu64 "\"}",
	       track + 1, ts_ns / 1000, ts_ns % 1000, dur_ns / 1000, dur_ns % 1000, name % 24,
	       name);
}

/* Writes one event and its child; returns when the next one may begin. */
static uint64_t write_pair(uint64_t track, uint64_t ts_ns, bool bursty)
{
	uint64_t dur_ns = bursty ? 400 + below(1200) : 2000 + below(12000);

	write_event(track, ts_ns, dur_ns);
	write_event(track, ts_ns + dur_ns / 4, dur_ns / 2);
	return ts_ns + dur_ns + 1 + below(bursty ? 100 : 9000);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: gen_tracks EVENTS TRACKS even|bursty > FILE\n");
		return 2;
	}
	uint64_t events = strtoull(argv[1], NULL, 10);
	uint64_t tracks = strtoull(argv[2], NULL, 10);
	bool bursty = !strcmp(argv[3], "bursty");
	if (!tracks || tracks > events) {
		fprintf(stderr, "gen_tracks: 1 to %" PRIu64 " tracks are possible\n", events);
		return 2;
	}
	printf("[{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"job\"}}");
	for (uint64_t track = 0; track < tracks; track++) {
		uint64_t ts_ns = 1000000 + below(1000000);

		for (uint64_t i = 0; i < events / tracks / 2; i++) {
			if (bursty && i % BURST == 0)
				ts_ns += below(40000000);
			ts_ns = write_pair(track, ts_ns, bursty);
		}
	}
	printf("\n]\n");
	return 0;
}
