// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver's own files, opened on a mount that nobody can reach; and what
 * that file system and cgpufs are made of.
 */
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/module.h>
#include <linux/mount.h>
#include "cgpu.h"
#include "compat.h"

#define PRIVATE_MAGIC		0x63677071

static struct vfsmount *private_mount;
static int private_count;

static const struct super_operations sops = {
	.statfs = simple_statfs,
	.drop_inode = generic_delete_inode,
};

/**
 * cgpu_make_inode() - an inode of one of our file systems
 * @sb: where it belongs
 * @mode: a folder or a device, with its permissions
 * @dev: number of a device
 *
 * Context: process; may sleep.
 * Return: the inode, or NULL without memory.
 */
struct inode *cgpu_make_inode(struct super_block *sb, umode_t mode, dev_t dev)
{
	struct inode *inode = new_inode(sb);

	if (!inode)
		return NULL;
	inode->i_ino = get_next_ino();
	cgpu_inode_times(inode);
	if (S_ISDIR(mode)) {
		inode->i_mode = mode;
		inode->i_op = &simple_dir_inode_operations;
		inode->i_fop = &simple_dir_operations;
		set_nlink(inode, 2);
	} else {
		init_special_inode(inode, mode, dev);
	}
	return inode;
}

/**
 * cgpu_make_root() - fill an empty superblock with a folder
 * @sb: it
 * @magic: what statfs() shows
 *
 * Context: process; may sleep.
 * Return: 0 or -ENOMEM.
 */
int cgpu_make_root(struct super_block *sb, unsigned long magic)
{
	sb->s_magic = magic;
	sb->s_op = &sops;
	sb->s_blocksize = PAGE_SIZE;
	sb->s_blocksize_bits = PAGE_SHIFT;
	sb->s_time_gran = 1;
	sb->s_root = d_make_root(cgpu_make_inode(sb, S_IFDIR | 0755, 0));
	return sb->s_root ? 0 : -ENOMEM;
}

static int private_fill(struct super_block *sb, void *data, int silent)
{
	return cgpu_make_root(sb, PRIVATE_MAGIC);
}

static struct dentry *private_do_mount(struct file_system_type *type, int flags,
				       const char *dev, void *data)
{
	return mount_nodev(type, flags, data, private_fill);
}

static struct file_system_type private_type = {
	.owner = THIS_MODULE,
	.name = "cgpufs_private",
	.mount = private_do_mount,
	.kill_sb = kill_litter_super,
};

/**
 * cgpu_private_get() - make cgpu_open_genuine() possible
 *
 * Context: process; may sleep.
 * Return: 0 or an errno.
 */
int cgpu_private_get(void)
{
	return simple_pin_fs(&private_type, &private_mount, &private_count);
}

/**
 * cgpu_private_put() - undo cgpu_private_get()
 *
 * Context: process; may sleep.
 */
void cgpu_private_put(void)
{
	simple_release_fs(&private_mount, &private_count);
}

/**
 * cgpu_open_genuine() - open a device as anybody outside a container would
 * @dev: its number
 *
 * The file has the driver's own operations: it tells which they are and
 * satisfies the checks of drivers that look for such a file.
 *
 * Context: process; between cgpu_private_get() and cgpu_private_put().
 * Return: the file or an ERR_PTR.
 */
struct file *cgpu_open_genuine(dev_t dev)
{
	struct path path = { .mnt = private_mount };
	struct inode *inode;
	struct file *file;

	inode = cgpu_make_inode(private_mount->mnt_sb, S_IFCHR | 0600, dev);
	if (!inode)
		return ERR_PTR(-ENOMEM);
	path.dentry = d_obtain_alias(inode);
	if (IS_ERR(path.dentry))
		return ERR_CAST(path.dentry);
	file = dentry_open(&path, O_RDWR | O_CLOEXEC, current_cred());
	dput(path.dentry);
	return file;
}
