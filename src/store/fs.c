#include "store/fs.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"

enum { FUSE_TYPE = 0x65735546, MOUNTINFO_MAX = 16 << 20 };

/* Numbers as in linux/magic.h and the file systems' own sources; not all of them are in every distribution's header. */
static const struct {
    uint32_t f_type;
    const char *kind;
} by_number[] = {
    { 0x00006969, "NFS" },
    { 0x0000517b, "SMB" },
    { 0xff534d42, "CIFS" },
    { 0xfe534d42, "SMB" },
    { 0x00c36400, "Ceph" },
    { 0x5346414f, "AFS" },
    { 0x6b414653, "AFS" },
    { 0x01021997, "9p" },
    { 0x0bd00bd0, "Lustre" },
    { 0x47504653, "GPFS" },
    { 0x73757245, "Coda" },
    { 0x0000564c, "NCP" },
    { 0x19830326, "BeeGFS" },
    { 0xaad7aaea, "PanFS" },
    { 0x20030528, "OrangeFS" },
    { 0x013111a8, "IBRIX" },
    { 0x786f4256, "VirtualBox shared folder" },
};

/* Local kinds of FUSE (ntfs, exfat, overlay, bindfs, a lone "fuse" or "fuseblk") are let through. */
static const struct {
    const char *type;
    const char *kind;
} by_fuse[] = {
    { "fuse.sshfs", "sshfs" },
    { "fuse.glusterfs", "GlusterFS" },
    { "fuse.ceph", "Ceph" },
    { "fuse.ceph-fuse", "Ceph" },
    { "fuse.s3fs", "s3fs" },
    { "fuse.goofys", "goofys" },
    { "fuse.geesefs", "GeeseFS" },
    { "fuse.gcsfuse", "gcsfuse" },
    { "fuse.rclone", "rclone" },
    { "fuse.juicefs", "JuiceFS" },
    { "fuse.mfs", "MooseFS" },
    { "fuse.lizardfs", "LizardFS" },
    { "fuse.blobfuse", "blobfuse" },
    { "fuse.blobfuse2", "blobfuse" },
    { "fuse.curlftpfs", "curlftpfs" },
    { "fuse.davfs", "WebDAV" },
    { "fuse.davfs2", "WebDAV" },
    { "fuse.smbnetfs", "SMB" },
    { "fuse.gvfsd-fuse", "GVfs" },
    { "fuse.fuse_dfs", "HDFS" },
    { "fuse.hdfs", "HDFS" },
    { "fuse.alluxio-fuse", "Alluxio" },
    { "fuse.seaweedfs", "SeaweedFS" },
    { "fuse.mount-s3", "mount-s3" },
    { "fuse.mountpoint-s3", "mount-s3" },
    { "fuse.nfs", "NFS" },
    { "fuse.afs", "AFS" },
};

const char *fs_network_kind(unsigned long f_type, const char *fuse_type)
{
    uint32_t number = (uint32_t)f_type; /* some kernels give it with its sign stretched */
    for (size_t i = 0; i < ARRAY_LEN(by_number); i++)
        if (by_number[i].f_type == number)
            return by_number[i].kind;
    if (number != FUSE_TYPE || !fuse_type)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(by_fuse); i++)
        if (strcmp(by_fuse[i].type, fuse_type) == 0)
            return by_fuse[i].kind;
    return NULL;
}

/* A line: ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG…] - TYPE SOURCE SUPEROPTIONS. Blanks inside fields are escaped. */
static int line_type(const char *line, size_t len, dev_t dev, char out[FS_TYPE_MAX])
{
    unsigned major_no, minor_no;
    if (sscanf(line, "%*u %*u %u:%u ", &major_no, &minor_no) != 2 || makedev(major_no, minor_no) != dev)
        return -ENOENT;
    const char *dash = memmem(line, len, " - ", 3);
    if (!dash)
        return -ENOENT;
    size_t n = strcspn(dash + 3, " \n");
    if (n == 0 || n >= FS_TYPE_MAX)
        return -ENOENT;
    memcpy(out, dash + 3, n);
    out[n] = '\0';
    return 0;
}

int fs_mount_type(const char *mountinfo, dev_t dev, char out[FS_TYPE_MAX])
{
    int rc = -ENOENT;
    for (const char *line = mountinfo; *line;) {
        size_t len = strcspn(line, "\n");
        if (line_type(line, len, dev, out) == 0)
            rc = 0;
        line += len + (line[len] == '\n');
    }
    return rc;
}

int fs_type(const char *path, char out[FS_TYPE_MAX], struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return err_sys(e, -errno, "cannot look at '%s'", path);
    AUTO_BUF struct buf text = BUF_INIT;
    int rc = io_read_file(&text, "/proc/self/mountinfo", MOUNTINFO_MAX, e);
    if (rc < 0)
        return rc;
    rc = fs_mount_type(buf_text(&text), st.st_dev, out);
    return rc < 0 ? err_set(e, rc, "cannot find the mount of '%s' in /proc/self/mountinfo", path) : 0;
}

int fs_network(const char *path, const char **out_kind, struct err *e)
{
    struct statfs fs;
    if (statfs(path, &fs) < 0)
        return err_sys(e, -errno, "cannot look at '%s'", path);
    char type[FS_TYPE_MAX] = "";
    /* Without /proc a FUSE mount passes for local: to refuse every unknown one would refuse too much. */
    if ((uint32_t)fs.f_type == FUSE_TYPE)
        (void)fs_type(path, type, NULL);
    *out_kind = fs_network_kind((unsigned long)fs.f_type, type);
    return 0;
}
