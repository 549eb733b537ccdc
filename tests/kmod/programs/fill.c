// SPDX-License-Identifier: Apache-2.0
/*
 * fill [DIR [MIB]]: takes memory in ever smaller pieces, down to the last MiB,
 * until it has enough or the driver has none; prints the MiB and the status
 * that ended it, and waits for its input's end.
 */
#include "rm.h"

int main(int argc, char **argv)
{
	uint64_t most = argc > 2 ? strtoull(argv[2], NULL, 10) : ~0ull;
	uint64_t piece, taken = 0;
	uint32_t status = 0, engine = 0xe0000000;
	struct rm rm;

	rm_open(&rm, argc > 1 ? argv[1] : "/dev");
	/* NVML shows the processes that have one */
	rm_make(&rm, DEVICE_HANDLE, &engine, CLASS_COMPUTE, NULL);
	for (piece = 256; piece; piece /= 2) {
		for (status = 0; !status && taken + piece <= most;) {
			uint32_t handle = 0;

			status = rm_memory(&rm, &handle, piece * MIB);
			taken += status ? 0 : piece;
		}
	}
	printf("%llu MiB, then %#x\n", (unsigned long long)taken, status);
	fflush(stdout);
	return getchar() == EOF;
}
