// SPDX-License-Identifier: GPL-2.0-only
/*
 * cgpufs: one superblock an instance, with the device nodes of its container.
 *
 * A node's inode has our own device number, so that the device cgroup can
 * forbid the driver's and a mknod opens nothing; stat() shows the driver's,
 * because its libraries refuse anything else; its operations are ours. A
 * shadow inode with the driver's number takes the place of f_inode while a
 * file is open.
 */
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "cgpu.h"
#include "compat.h"

#define CGPUFS_MAGIC		0x63677075

static int cgpufs_getattr(CGPU_IDMAP, const struct path *path,
			  struct kstat *stat, u32 mask, unsigned int flags)
{
	struct inode *inode = d_inode(path->dentry);
	struct cgpu_node *node = inode->i_private;

	cgpu_fillattr(idmap, mask, inode, stat);
	if (node)
		stat->rdev = node->shown;
	return 0;
}

static const struct inode_operations cgpufs_node_iops = {
	.getattr = cgpufs_getattr,
};

/**
 * struct cgpufs - what hangs on a superblock
 * @inst: the instance, a reference
 * @nodes: its nodes
 * @pinned: the private mount is pinned
 */
struct cgpufs {
	struct cgpu_inst *inst;
	struct list_head nodes;
	bool pinned;
};

static void free_node(struct cgpu_node *node)
{
	if (node->genuine)
		fput(node->genuine);
	list_del(&node->link);
	kfree(node);
}

static int show_node(struct super_block *sb, struct cgpu_node *node,
		     const char *name, dev_t own)
{
	struct inode *inode = cgpu_make_inode(sb, S_IFCHR | 0666, own);
	struct dentry *dentry;

	if (!inode)
		return -ENOMEM;
	inode->i_fop = &cgpu_fops;
	inode->i_op = &cgpufs_node_iops;
	inode->i_private = node;
	dentry = d_alloc_name(sb->s_root, name);
	if (!dentry) {
		iput(inode);
		return -ENOMEM;
	}
	d_add(dentry, inode);
	return 0;
}

static int add_node(struct super_block *sb, const char *name, int minor,
		    dev_t shown, dev_t own)
{
	struct cgpufs *fs = sb->s_fs_info;
	struct cgpu_node *node = kzalloc(sizeof(*node), GFP_KERNEL);
	struct file *genuine;

	if (!node)
		return -ENOMEM;
	node->inst = fs->inst;
	node->minor = minor;
	node->shown = shown;
	list_add_tail(&node->link, &fs->nodes);
	genuine = cgpu_open_genuine(shown);
	if (IS_ERR(genuine)) {
		pr_err("%s: the driver does not open %s: %ld\n",
		       fs->inst->id, name, PTR_ERR(genuine));
		return PTR_ERR(genuine);
	}
	node->genuine = genuine;
	node->fops = genuine->f_op;
	node->shadow = cgpu_make_inode(sb, S_IFCHR | 0666, shown);
	if (!node->shadow)
		return -ENOMEM;
	/* Security modules have judged the inode of the path already. */
	node->shadow->i_flags |= S_PRIVATE;
	return show_node(sb, node, name, own);
}

static int add_nodes(struct super_block *sb, struct cgpu_inst *inst, int uvm)
{
	char name[16];
	int minor, ret;

	ret = add_node(sb, "nvidiactl", NV_MINOR_CTL,
		       MKDEV(NV_MAJOR, NV_MINOR_CTL),
		       MKDEV(cgpu_ctl_major, 2 * inst->number));
	for (minor = 0; !ret && minor < NV_MAX_DEVICES; minor++) {
		if (!inst->share[minor])
			continue;
		snprintf(name, sizeof(name), "nvidia%d", minor);
		ret = add_node(sb, name, minor, MKDEV(NV_MAJOR, minor),
			       MKDEV(cgpu_gpus[minor]->major, inst->number));
	}
	if (!ret && uvm)
		ret = add_node(sb, "nvidia-uvm", CGPU_NODE_UVM,
			       MKDEV(uvm, 0),
			       MKDEV(cgpu_ctl_major, 2 * inst->number + 1));
	return ret;
}

/**
 * cgpu_node_of() - another node of a file's instance
 * @f: the file
 * @minor: which
 *
 * Context: process; the file keeps the superblock.
 * Return: the node, or NULL if the instance has none.
 */
struct cgpu_node *cgpu_node_of(struct cgpu_file *f, int minor)
{
	struct cgpufs *fs = f->inode->i_sb->s_fs_info;
	struct cgpu_node *node;

	list_for_each_entry(node, &fs->nodes, link)
		if (node->minor == minor)
			return node;
	return NULL;
}
EXPORT_SYMBOL_GPL(cgpu_node_of);

static int fill_super(struct super_block *sb, struct cgpu_inst *inst, int uvm)
{
	struct cgpufs *fs = sb->s_fs_info;
	int ret;

	lockdep_assert_held(&cgpu_registry_lock);
	ret = cgpu_private_get();
	if (ret)
		return ret;
	fs->pinned = true;
	ret = cgpu_make_root(sb, CGPUFS_MAGIC);
	if (!ret)
		ret = add_nodes(sb, inst, uvm);
	if (ret)
		return ret;
	inst->sb = sb;
	sb->s_flags |= SB_ACTIVE;
	return 0;
}

static struct cgpu_inst *inst_of_options(char *options)
{
	struct cgpu_inst *inst;

	if (!options || strncmp(options, "id=", 3)) {
		pr_err("mount: say which instance: -o id=<id>\n");
		return ERR_PTR(-EINVAL);
	}
	inst = cgpu_inst_find(options + 3);
	if (!inst) {
		pr_err("mount: no instance %.*s; create it first\n",
		       CGPU_ID_MAX, options + 3);
		return ERR_PTR(-ENOENT);
	}
	return inst;
}

static int same_inst(struct super_block *sb, void *data)
{
	struct cgpufs *fs = sb->s_fs_info, *wanted = data;

	return fs && fs->inst == wanted->inst;
}

/* Below a spin lock of the kernel: nothing is allocated here that may wait. */
static int set_inst(struct super_block *sb, void *data)
{
	struct cgpufs *fs = data;
	int ret = set_anon_super(sb, NULL);

	if (ret)
		return ret;
	cgpu_inst_get(fs->inst);
	sb->s_fs_info = fs;
	return 0;
}

/* The instance's mount: the one that there is, or a new one that is empty yet. */
static struct super_block *super_of(struct file_system_type *type, int flags,
				    struct cgpu_inst *inst)
{
	struct cgpufs *fs = kzalloc(sizeof(*fs), GFP_KERNEL);
	struct super_block *sb;

	if (!fs)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&fs->nodes);
	fs->inst = inst;
	sb = sget(type, same_inst, set_inst, flags, fs);
	if (IS_ERR(sb) || sb->s_fs_info != fs)
		kfree(fs);
	return sb;
}

static struct dentry *cgpufs_mount(struct file_system_type *type, int flags,
				   const char *dev, void *data)
{
	/* It reads a file of /proc, and reading ours takes the registry's lock. */
	int uvm = cgpu_find_major("nvidia-uvm"), ret = 0;
	struct super_block *sb;
	struct cgpu_inst *inst;

	mutex_lock(&cgpu_registry_lock);
	inst = inst_of_options(data);
	sb = IS_ERR(inst) ? ERR_CAST(inst) : super_of(type, flags, inst);
	if (!IS_ERR(sb) && !sb->s_root)
		ret = fill_super(sb, inst, uvm);
	mutex_unlock(&cgpu_registry_lock);
	if (IS_ERR(sb))
		return ERR_CAST(sb);
	if (ret) {
		deactivate_locked_super(sb);
		return ERR_PTR(ret);
	}
	return dget(sb->s_root);
}

static void cgpufs_kill_sb(struct super_block *sb)
{
	struct cgpufs *fs = sb->s_fs_info;
	struct cgpu_node *node, *next;

	list_for_each_entry(node, &fs->nodes, link) {
		if (node->shadow)
			iput(node->shadow);
		node->shadow = NULL;
	}
	kill_litter_super(sb);
	list_for_each_entry_safe(node, next, &fs->nodes, link)
		free_node(node);
	if (fs->pinned)
		cgpu_private_put();
	mutex_lock(&cgpu_registry_lock);
	if (fs->inst->sb == sb)
		fs->inst->sb = NULL;
	mutex_unlock(&cgpu_registry_lock);
	cgpu_inst_put(fs->inst);
	kfree(fs);
}

static struct file_system_type cgpufs_type = {
	.owner = THIS_MODULE,
	.name = "cgpufs",
	.mount = cgpufs_mount,
	.kill_sb = cgpufs_kill_sb,
};

/**
 * cgpu_fs_init() - offer the file system
 *
 * Context: module load.
 * Return: 0 or an errno.
 */
int cgpu_fs_init(void)
{
	return register_filesystem(&cgpufs_type);
}

/**
 * cgpu_fs_exit() - withdraw the file system
 *
 * Context: module unload; nothing is mounted any more.
 */
void cgpu_fs_exit(void)
{
	unregister_filesystem(&cgpufs_type);
}
