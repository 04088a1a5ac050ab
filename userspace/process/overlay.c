#include "userspace/process/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "analysis/base/cleanup.h"
#include "userspace/process/living_thread.h"
#include "userspace/process/mapped_files.h"
#include "userspace/process/mount_table.h"

#define PATH_BYTES 4096
#define LAYERS_MAX 500 /* as many as the kernel allows */

bool rls_overlay_holds(const char *path)
{
	struct statfs system;

	return !statfs(path, &system) && system.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* ---- the mount ---- */

/* The line of the mount that holds the path. In *line, the caller's. */
static int mount_find(pid_t pid, const char *path, char **line, struct rls_mount *out)
{
	char table[RLS_PROCESS_PATH_BYTES];
	_cleanup_fclose_ FILE *file = NULL;
	struct statx status;
	size_t room = 0;

	if (statx(AT_FDCWD, path, 0, STATX_MNT_ID, &status) || !(status.stx_mask & STATX_MNT_ID))
		return -ENOTSUP;
	rls_process_path(table, pid, "mountinfo");
	file = fopen(table, "re");
	if (!file)
		return -errno;
	while (getline(line, &room, file) > 0) {
		if (strtoull(*line, NULL, 10) == status.stx_mnt_id)
			return rls_mount_parse(*line, out) ? 0 : -EINVAL;
	}
	return -ENOENT;
}

/* ---- its layers ---- */

struct search {
	dev_t device; /* of the mapped file */
	ino_t inode;
	const struct rls_mount *mount;
	const char *inside; /* the file's path within the overlay */
	char root[RLS_PROCESS_PATH_BYTES]; /* the process's */
	char found[PATH_BYTES];
};

static bool search_try(struct search *search, const char *base, const char *layer)
{
	int length = snprintf(search->found, sizeof(search->found), "%s/%s%s", base, layer,
			      search->inside);
	dev_t device;
	ino_t inode;

	return length < (int)sizeof(search->found) &&
	       !rls_mapped_file_of_path(search->found, &device, &inode) &&
	       device == search->device && inode == search->inode;
}

/* As we, the host and the process see it. */
static bool search_roots(struct search *search, const char *base, const char *layer)
{
	const char *roots[] = {"", "/proc/1/root", search->root};
	char path[PATH_BYTES];

	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
		if (snprintf(path, sizeof(path), "%s%s", roots[i], base) < (int)sizeof(path) &&
		    search_try(search, path, layer))
			return true;
	}
	return false;
}

/* Relative to where mount was called: here, or above the mount, as container engines do it. What is found is compared
 * with what is mapped. */
static bool search_layer(struct search *search, const char *layer)
{
	char base[PATH_BYTES], *last;

	if (*layer == '/')
		return search_roots(search, "", layer);
	if (search_try(search, ".", layer))
		return true;
	snprintf(base, sizeof(base), "%s", search->mount->point);
	while ((last = strrchr(base, '/'))) {
		*last = '\0';
		if (search_roots(search, base, layer))
			return true;
	}
	return false;
}

/* "a:b::c", where a colon of a name is "\:". layers: modified. */
static bool search_layers(struct search *search, char *layers)
{
	for (size_t i = 0; layers && *layers && i < LAYERS_MAX; i++) {
		char *end = layers, *to = layers, *layer = layers;

		for (; *end && *end != ':'; end++) {
			if (end[0] == '\\' && (end[1] == ':' || end[1] == '\\'))
				end++;
			*to++ = *end;
		}
		layers = *end ? end + 1 : NULL;
		*to = '\0';
		if (*layer && search_layer(search, layer))
			return true;
	}
	return false;
}

/* "rw,lowerdir=a:b,upperdir=..." or one "lowerdir+=a" for each. A comma of a name is \054 there. */
static bool search_options(struct search *search)
{
	_cleanup_free_ char *options = strdup(search->mount->options);
	char *at = options, *option;

	while (at && (option = strsep(&at, ","))) {
		size_t name = strcspn(option, "=");

		if (option[name] != '=' || (strncmp(option, "lowerdir", strlen("lowerdir")) &&
					    strncmp(option, "datadir+", strlen("datadir+")) &&
					    strncmp(option, "upperdir", strlen("upperdir"))))
			continue;
		rls_mount_unescape(option);
		if (search_layers(search, option + name + 1))
			return true;
	}
	return false;
}

/* The rest of a path behind a folder that it is in; NULL: it is not. */
static const char *path_behind(const char *path, const char *folder)
{
	size_t length = strcmp(folder, "/") ? strlen(folder) : 0;

	if (strncmp(path, folder, length) || path[length] != '/')
		return NULL;
	return path + length;
}

/* By each end of the path that begins with the mount's point: of a process whose root is another folder the path begins
 * with that. */
static int search_mount(struct search *search, const char *path)
{
	for (const char *at = path; at; at = strchr(at + 1, '/')) {
		const char *behind = path_behind(at, search->mount->point);
		_cleanup_free_ char *inside = NULL;

		if (!behind)
			continue;
		if (asprintf(&inside, "%s%s",
			     strcmp(search->mount->root, "/") ? search->mount->root : "",
			     behind) < 0)
			return -ENOMEM;
		search->inside = inside;
		if (search_options(search))
			return 0;
	}
	return -ESTALE;
}

static int find_below(pid_t pid, const char *name, struct search *search, char **path)
{
	_cleanup_free_ char *line = NULL;
	struct rls_mount mount;
	char *found;
	int r = mount_find(pid, *path, &line, &mount);

	if (r)
		return r;
	search->mount = &mount;
	rls_process_path(search->root, pid, "root");
	r = search_mount(search, name);
	found = r ? NULL : strdup(search->found);
	if (r || !found)
		return r ? r : -ENOMEM;
	free(*path);
	*path = found;
	return 0;
}

int rls_overlay_locate(pid_t pid, uint64_t address, const char *name, char **path, dev_t *device,
		       ino_t *inode)
{
	struct search search = {0};
	dev_t now_device;
	ino_t now_inode;
	int r = rls_mapped_file_at(pid, address, &search.device, &search.inode);

	/* Another identity only where there can be none: one file must not have two. */
	if (r)
		return r;
	r = rls_mapped_file_of_path(*path, &now_device, &now_inode);
	if (!r && (now_device != search.device || now_inode != search.inode))
		r = find_below(pid, name, &search, path);
	if (r)
		return r == -ENOMEM ? r : -ESTALE;
	*device = search.device;
	*inode = search.inode;
	return 0;
}
