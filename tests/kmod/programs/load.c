// SPDX-License-Identifier: Apache-2.0
/*
 * A CUDA program whose load can be told: reads commands from its standard
 * input, one a line, and answers each by a line. Its argument, if any, is how
 * many microseconds a row of short kernels lasts.
 *
 *   work PATTERN MODE STREAMS   kernels of these lengths in turn (microseconds, commas), over and over;
 *                               MODE: queued (two rows of them in flight), waited (each is waited for),
 *                               batch (a row is queued and waited for), graph (a row is one graph, two in flight),
 *                               graphs (a row is one graph and waited for)
 *   rest                        nothing
 *   once MICROSECONDS           one kernel; answers how many nanoseconds it took until it had ended
 *
 * Answers are "ok" or, from once, the number. The end of the input ends it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_STREAMS	8
#define MOST_KERNELS	512
#define ROW_US		16000	/* a row of short kernels lasts about so long, unless told otherwise */

static const char ptx[] =
	".version 6.0\n.target sm_60\n.address_size 64\n"
	".visible .entry spin(.param .u64 duration, .param .u64 out)\n"
	"{\n\t.reg .u64 %rd<4>;\n"
	"\tld.param.u64 %rd1, [duration];\n\tld.param.u64 %rd2, [out];\n"
	"\tcvta.to.global.u64 %rd3, %rd2;\n\tst.global.u64 [%rd3], %rd1;\n\tret;\n}\n";

enum mode { QUEUED, WAITED, BATCH, GRAPH, GRAPHS, MODES };

static const char *const mode_names[] = { "queued", "waited", "batch", "graph", "graphs" };

static struct {
	bool works;
	enum mode mode;
	uint64_t ns[MOST_KERNELS];
	int kernels, streams, next;
} load;

static uint64_t row_ns = ROW_US * 1000ull;
static void *cuda, *function, *streams[MOST_STREAMS], *events[2], *graph;
static uint64_t out;

static int call(const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	int (*f)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) = dlsym(cuda, name);
	int code = f ? f(a, b, c, d, e) : -1;

	if (code) {
		printf("%s returned %d\n", name, code);
		exit(1);
	}
	return code;
}

#define CALL5(name, a, b, c, d, e, ...) \
	call(name, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d), (uint64_t)(e))
#define CALL(...)	CALL5(__VA_ARGS__, 0, 0, 0, 0, 0, 0)

static void launch(uint64_t ns, void *stream)
{
	static int (*f)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
			void **, void **);
	void *arguments[] = { &ns, &out };
	int code;

	if (!f)
		f = dlsym(cuda, "cuLaunchKernel");
	code = f(function, 4, 3, 2, 64, 1, 1, 0, stream, arguments, NULL);
	if (code) {
		printf("cuLaunchKernel returned %d\n", code);
		exit(1);
	}
}

static void open_cuda(void)
{
	void *context, *module;
	int i;

	cuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cuda) {
		printf("%s\n", dlerror());
		exit(1);
	}
	CALL("cuInit", 0);
	CALL("cuCtxCreate_v2", &context, 4, 0);
	CALL("cuMemAlloc_v2", &out, 4096);
	CALL("cuModuleLoadData", &module, ptx);
	CALL("cuModuleGetFunction", &function, module, "spin");
	for (i = 0; i < MOST_STREAMS; i++)
		CALL("cuStreamCreate", &streams[i], 1);
	for (i = 0; i < 2; i++)
		CALL("cuEventCreate", &events[i], 3);
}

static void queue_row(void)
{
	int i;

	for (i = 0; i < load.kernels; i++)
		launch(load.ns[i], streams[i % load.streams]);
}

/* The other streams go on by themselves: their work is as long. */
static void two_in_flight(void)
{
	if (load.mode == GRAPH)
		CALL("cuGraphLaunch", graph, streams[0]);
	else
		queue_row();
	CALL("cuEventRecord", events[load.next & 1], streams[0]);
	if (load.next++)
		CALL("cuEventSynchronize", events[load.next & 1]);
}

static void wait_for_each(void)
{
	int i;

	for (i = 0; i < load.kernels; i++) {
		launch(load.ns[i], streams[0]);
		CALL("cuCtxSynchronize");
	}
}

static void step(void)
{
	switch (load.mode) {
	case WAITED:
		wait_for_each();
		break;
	case BATCH:
		queue_row();
		CALL("cuCtxSynchronize");
		break;
	case GRAPHS:
		CALL("cuGraphLaunch", graph, streams[0]);
		CALL("cuCtxSynchronize");
		break;
	default:
		two_in_flight();
	}
}

static void make_graph(void)
{
	void *recorded;

	CALL("cuStreamBeginCapture_v2", streams[0], 0);
	queue_row();
	CALL("cuStreamEndCapture", streams[0], &recorded);
	CALL("cuGraphInstantiateWithFlags", &graph, recorded, 0);
	CALL("cuGraphDestroy", recorded);
}

static void set_pattern(char *words)
{
	uint64_t sum = 0;
	char *word, *rest = words;
	int n = 0, i;

	while ((word = strsep(&rest, ",")) && n < MOST_KERNELS) {
		load.ns[n] = strtoull(word, NULL, 10) * 1000;
		sum += load.ns[n++];
	}
	load.kernels = n;
	if (load.mode != QUEUED && load.mode != GRAPH)
		return;
	for (i = n; i < MOST_KERNELS && sum < row_ns; i++) {
		load.ns[i] = load.ns[i % n];
		sum += load.ns[i];
		load.kernels = i + 1;
	}
}

static void start(char *pattern, const char *mode, int stream_count)
{
	int i;

	for (i = 0; i < MODES; i++)
		if (!strcmp(mode, mode_names[i]))
			load.mode = i;
	set_pattern(pattern);
	load.streams = load.mode >= GRAPH ? 1 : stream_count;
	load.next = 0;
	load.works = true;
	if (load.mode >= GRAPH)
		make_graph();
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void once(uint64_t us)
{
	uint64_t began = now_ns();

	launch(us * 1000, streams[0]);
	CALL("cuCtxSynchronize");
	printf("%llu\n", (unsigned long long)(now_ns() - began));
}

static void rest(void)
{
	load.works = false;
	CALL("cuCtxSynchronize");
	if (graph)
		CALL("cuGraphExecDestroy", graph);
	graph = NULL;
}

static void obey(char *line)
{
	char pattern[4096], mode[16];
	int stream_count;
	unsigned long long us;

	if (sscanf(line, "work %4095s %15s %d", pattern, mode, &stream_count) == 3) {
		rest();
		start(pattern, mode, stream_count);
		printf("ok\n");
	} else if (sscanf(line, "once %llu", &us) == 1) {
		once(us);
	} else {
		rest();
		printf("ok\n");
	}
	fflush(stdout);
}

static bool has_command(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };

	return poll(&in, 1, load.works ? 0 : -1) > 0;
}

int main(int argc, char **argv)
{
	char line[8192];

	if (argc > 1)
		row_ns = strtoull(argv[1], NULL, 10) * 1000;
	setvbuf(stdin, NULL, _IONBF, 0);
	open_cuda();
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		if (!has_command())
			step();
		else if (!fgets(line, sizeof(line), stdin))
			return 0;
		else
			obey(line);
	}
}
