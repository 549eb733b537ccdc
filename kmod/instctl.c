// SPDX-License-Identifier: GPL-2.0-only
/* The commands of inst_ctl, and what it shows. */
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/parser.h>
#include <linux/seq_file.h>
#include "procfs.h"

u64 cgpu_default_memsize;

/*
 * Commands one after another, so that a folder is gone before its name comes
 * back; outside the registry's lock, which a file in that folder may want.
 */
static DEFINE_MUTEX(commands_lock);

/**
 * struct create - the words of a create
 * @id: instance
 * @gpu: minor, -1 = not said
 * @mem: bytes
 * @weight: slices
 * @highprio: 0 or 1
 */
struct create {
	const char *id;
	int gpu;
	u64 mem;
	u64 weight;
	u64 highprio;
};

static int parse_word(struct create *c, char *word)
{
	char *value = strchr(word, '=');
	u64 number;

	if (!value || kstrtou64(value + 1, 10, &number)) {
		pr_err("create %s: %s is no NAME=NUMBER\n", c->id, word);
		return -EINVAL;
	}
	*value = 0;
	if (!strcmp(word, "gpu") && number < NV_MAX_DEVICES) {
		c->gpu = number;
	} else if (!strcmp(word, "mem")) {
		c->mem = number;
	} else if (!strcmp(word, "weight")) {
		c->weight = number;
	} else if (!strcmp(word, "highprio") && number <= 1) {
		c->highprio = number;
	} else {
		pr_err("create %s: %s=%llu: say gpu=N mem=BYTES weight=W highprio=0|1\n",
		       c->id, word, number);
		return -EINVAL;
	}
	return 0;
}

static struct cgpu_gpu *gpu_of(const struct create *c)
{
	struct cgpu_gpu *gpu = c->gpu >= 0 ? cgpu_gpus[c->gpu] : NULL;

	if (!gpu)
		pr_err("create %s: there is no GPU %d\n", c->id, c->gpu);
	return gpu;
}

static int check_numbers(const struct create *c)
{
	if (!c->mem) {
		pr_err("create %s: mem= must say bytes, more than 0\n", c->id);
		return -EINVAL;
	}
	if (!c->weight || c->weight > CGPU_MAX_INST) {
		pr_err("create %s: weight=%llu is not within 1..%d\n", c->id,
		       c->weight, CGPU_MAX_INST);
		return -EINVAL;
	}
	return 0;
}

static int create(char *id, char *words)
{
	struct create c = {
		.id = id, .gpu = -1, .mem = cgpu_default_memsize, .weight = 1,
	};
	struct cgpu_share *share;
	struct cgpu_gpu *gpu;
	char *word;
	int ret = 0;

	while (!ret && (word = strsep(&words, " \t")))
		ret = *word ? parse_word(&c, word) : 0;
	if (!ret)
		ret = check_numbers(&c);
	if (ret)
		return ret;
	gpu = gpu_of(&c);
	if (!gpu)
		return -EINVAL;
	mutex_lock(&cgpu_registry_lock);
	share = cgpu_share_create(id, gpu, c.mem, c.weight, c.highprio);
	if (!IS_ERR(share))
		cgpu_policy_follow(gpu);
	mutex_unlock(&cgpu_registry_lock);
	return PTR_ERR_OR_ZERO(share);
}

static int destroy(const char *id)
{
	struct cgpu_inst *inst;
	int minor;

	mutex_lock(&cgpu_registry_lock);
	inst = cgpu_inst_detach(id);
	mutex_unlock(&cgpu_registry_lock);
	if (IS_ERR(inst))
		return PTR_ERR(inst);
	for (minor = 0; minor < NV_MAX_DEVICES; minor++)
		if (inst->share[minor])
			cgpu_procfs_del(inst->share[minor]);
	cgpu_inst_put(inst);
	/* Not before: the files of its folders call the core. */
	mutex_lock(&cgpu_registry_lock);
	cgpu_core_unpin();
	mutex_unlock(&cgpu_registry_lock);
	return 0;
}

/**
 * cgpu_command() - one line of inst_ctl
 * @line: the line, taken apart
 *
 * Context: process.
 * Return: 0 or an errno, whose reason is in the log.
 */
int cgpu_command(char *line)
{
	char *words = strim(line);
	char *verb = strsep(&words, " \t");
	char *id = words ? strsep(&words, " \t") : "";
	int ret;

	mutex_lock(&commands_lock);
	if (!strcmp(verb, "create") && *id) {
		ret = create(id, words);
	} else if (!strcmp(verb, "destroy") && *id && !words) {
		ret = destroy(id);
	} else {
		pr_err("inst_ctl: '%s %s': say create <id> gpu=<N> mem=<bytes> or destroy <id>\n",
		       verb, id);
		ret = -EINVAL;
	}
	mutex_unlock(&commands_lock);
	return ret;
}

static void show_share(struct seq_file *m, struct cgpu_inst *inst,
		       struct cgpu_share *share)
{
	struct cgpu_account a;

	mutex_lock(&inst->lock);
	a = share->account;
	mutex_unlock(&inst->lock);
	seq_printf(m, "%s gpu=%d inst=%d mem=%llu used=%llu weight=%u highprio=%d busy_ns=%llu oom=%llu dev=%d:%d ctl=%d:%d uvm=%d:%d\n",
		   inst->id, share->gpu->minor, inst->number, a.limit, a.used,
		   share->weight, share->highprio, cgpu_share_busy_ns(share),
		   a.oom, share->gpu->major, inst->number, cgpu_ctl_major,
		   2 * inst->number, cgpu_ctl_major, 2 * inst->number + 1);
}

/**
 * cgpu_commands_show() - what inst_ctl shows
 * @m: where
 * @unused: nothing
 *
 * Context: process.
 * Return: 0.
 */
int cgpu_commands_show(struct seq_file *m, void *unused)
{
	struct cgpu_inst *inst;
	int minor;

	mutex_lock(&cgpu_registry_lock);
	list_for_each_entry(inst, &cgpu_insts, link)
		for (minor = 0; minor < NV_MAX_DEVICES; minor++)
			if (inst->share[minor] && cgpu_inst_visible(inst))
				show_share(m, inst, inst->share[minor]);
	mutex_unlock(&cgpu_registry_lock);
	return 0;
}
