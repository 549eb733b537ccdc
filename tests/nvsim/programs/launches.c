// SPDX-License-Identifier: Apache-2.0
/*
 * How fast kernels of no duration are launched, and where the time goes. Prints
 * lines of a name and a number. launches [COUNT]
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define BEHIND		500	/* launches that fit behind a kernel that still runs */
#define LONG_NS		1500000000ull
#define WAITED		300
#define BLOCKING	4	/* CU_CTX_SCHED_BLOCKING_SYNC */
#define SPINNING	1	/* CU_CTX_SCHED_SPIN */

static const char ptx[] =
	".version 6.0\n.target sm_60\n.address_size 64\n"
	".visible .entry spin(.param .u64 duration) { ret; }\n";

typedef int (*function)(void *, ...);

static void *library;
static void *kernel;
static uint64_t duration;

/* A function of libcuda; its arguments are pointers, integers or missing. */
static function find(const char *name)
{
	function found = (function)dlsym(library, name);

	if (!found) {
		fprintf(stderr, "launches: libcuda has no %s\n", name);
		exit(1);
	}
	return found;
}

static void check(int code, const char *what)
{
	if (!code)
		return;
	fprintf(stderr, "launches: %s returned %d\n", what, code);
	exit(1);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void launch(uint64_t ns)
{
	static int (*call)(void *, unsigned, unsigned, unsigned, unsigned,
			   unsigned, unsigned, unsigned, void *, void **, void **);
	void *parameters[] = { &duration };

	if (!call)
		*(void **)&call = dlsym(library, "cuLaunchKernel");
	duration = ns;
	check(call(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL), "cuLaunchKernel");
}

static void wait_for_all(void)
{
	static int (*call)(void);

	if (!call)
		*(void **)&call = dlsym(library, "cuCtxSynchronize");
	check(call(), "cuCtxSynchronize");
}

static void *start(unsigned flags)
{
	static void *context;
	void *module;
	int (*create)(void **, unsigned, int);

	*(void **)&create = (void *)find("cuCtxCreate_v2");
	check(create(&context, flags, 0), "cuCtxCreate");
	check(find("cuModuleLoadData")(&module, ptx), "cuModuleLoadData");
	check(find("cuModuleGetFunction")(&kernel, module, "spin"), "cuModuleGetFunction");
	launch(1);
	wait_for_all();
	return context;
}

/* Nanoseconds of processor time of the module's thread; 0 in user space. */
static double engine_ns(void)
{
	struct dirent *entry;
	double used = 0;
	DIR *processes = opendir("/proc");

	while ((entry = readdir(processes))) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = entry->d_name[0] >= '0' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
		if (!file)
			continue;
		if (fscanf(file, "%31s", name) == 1 && !strcmp(name, "nvsim")) {
			fclose(file);
			snprintf(path, sizeof(path), "/proc/%s/schedstat", entry->d_name);
			file = fopen(path, "r");
			if (!file || fscanf(file, "%lf", &used) != 1)
				used = 0;
		}
		if (file)
			fclose(file);
	}
	closedir(processes);
	return used;
}

static double seconds(struct timeval time)
{
	return time.tv_sec + time.tv_usec / 1e6;
}

static void queued(int count)
{
	struct rusage before, after;
	double begin, engine = engine_ns(), took;
	int i;

	getrusage(RUSAGE_SELF, &before);
	begin = now();
	for (i = 0; i < count; i++)
		launch(1);
	wait_for_all();
	took = now() - begin;
	getrusage(RUSAGE_SELF, &after);
	printf("queued_per_s %.0f\n", count / took);
	printf("user_us %.1f\n", (seconds(after.ru_utime) - seconds(before.ru_utime)) * 1e6 / count);
	printf("system_us %.1f\n", (seconds(after.ru_stime) - seconds(before.ru_stime)) * 1e6 / count);
	printf("engine_us %.1f\n", (engine_ns() - engine) / 1e3 / count);
	printf("switches %.3f\n", (double)(after.ru_nvcsw - before.ru_nvcsw) / count);
}

/* The engine is busy with a long kernel: what remains is libcuda's own part. */
static void libcuda_alone(void)
{
	double begin;
	int i;

	launch(LONG_NS);
	begin = now();
	for (i = 0; i < BEHIND; i++)
		launch(1);
	printf("libcuda_alone_per_s %.0f\n", BEHIND / (now() - begin));
	wait_for_all();
}

static void waited(const char *name)
{
	double begin = now();
	int i;

	for (i = 0; i < WAITED; i++) {
		launch(1);
		wait_for_all();
	}
	printf("%s_us %.1f\n", name, (now() - begin) * 1e6 / WAITED);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 20000;
	void *context;

	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "launches: %s\n", dlerror());
		return 1;
	}
	check(((int (*)(unsigned))(void *)find("cuInit"))(0), "cuInit");
	context = start(SPINNING);
	queued(count);
	libcuda_alone();
	waited("waited_spinning");
	check(find("cuCtxDestroy_v2")(context), "cuCtxDestroy");
	start(BLOCKING);
	waited("waited_blocking");
	return 0;
}
