#include "analysis/writers/export/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"

struct text {
	uint64_t *offsets; /* of its full blocks in the file */
	size_t block_count, block_capacity;
	char *block;
	size_t used;
};

struct rls_spool {
	struct text *texts; /* of number i: texts[i] */
	size_t text_count;
	int fd; /* -1: not yet needed */
	uint64_t file_bytes;
};

struct rls_spool *rls_spool_new(void)
{
	struct rls_spool *spool = calloc(1, sizeof(*spool));

	if (spool)
		spool->fd = -1;
	return spool;
}

void rls_spool_free(struct rls_spool *spool)
{
	if (!spool)
		return;
	for (size_t i = 0; i < spool->text_count; i++) {
		free(spool->texts[i].offsets);
		free(spool->texts[i].block);
	}
	free(spool->texts);
	if (spool->fd >= 0)
		close(spool->fd);
	free(spool);
}

/* A file without a name where the file system can; else one whose name is gone at once. */
static int open_unnamed(const char *folder)
{
	_cleanup_free_ char *path = NULL;
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if (asprintf(&path, "%s/rlscope-bpf-XXXXXX", folder) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

static int open_file(struct rls_spool *spool)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	if (spool->fd >= 0)
		return 0;
	fd = open_unnamed(folder && *folder ? folder : "/var/tmp");
	if (fd < 0)
		return fd;
	spool->fd = fd;
	return 0;
}

static int spool_find(struct rls_spool *spool, uint32_t number, struct text **out)
{
	size_t count = spool->text_count;
	struct text *text;

	if (number >= count) {
		struct text *texts;

		count = number + 1 > 2 * count ? number + 1 : 2 * count;
		texts = reallocarray(spool->texts, count, sizeof(*texts));
		if (!texts)
			return -ENOMEM;
		memset(texts + spool->text_count, 0, (count - spool->text_count) * sizeof(*texts));
		spool->texts = texts;
		spool->text_count = count;
	}
	text = &spool->texts[number];
	if (!text->block)
		text->block = malloc(RLS_SPOOL_BLOCK_BYTES);
	*out = text;
	return text->block ? 0 : -ENOMEM;
}

static int write_block(struct rls_spool *spool, struct text *text)
{
	int err = open_file(spool);

	if (!err)
		err = rls_grow(&text->offsets, &text->block_capacity, text->block_count);
	if (err)
		return err;
	for (size_t done = 0; done < RLS_SPOOL_BLOCK_BYTES;) {
		ssize_t wrote = pwrite(spool->fd, text->block + done, RLS_SPOOL_BLOCK_BYTES - done,
				       (off_t)(spool->file_bytes + done));

		if (wrote < 0 && errno != EINTR)
			return -errno;
		done += wrote > 0 ? (size_t)wrote : 0;
	}
	text->offsets[text->block_count++] = spool->file_bytes;
	spool->file_bytes += RLS_SPOOL_BLOCK_BYTES;
	text->used = 0;
	return 0;
}

int rls_spool_put(struct rls_spool *spool, uint32_t number, const char *bytes, size_t count)
{
	struct text *text;
	int err = spool_find(spool, number, &text);

	while (!err && count) {
		size_t room = RLS_SPOOL_BLOCK_BYTES - text->used;
		size_t part = count < room ? count : room;

		memcpy(text->block + text->used, bytes, part);
		text->used += part;
		bytes += part;
		count -= part;
		if (text->used == RLS_SPOOL_BLOCK_BYTES)
			err = write_block(spool, text);
	}
	return err;
}

static int copy_block(const struct rls_spool *spool, uint64_t offset, FILE *out)
{
	char block[RLS_SPOOL_BLOCK_BYTES];

	for (size_t done = 0; done < sizeof(block);) {
		ssize_t got = pread(spool->fd, block + done, sizeof(block) - done,
				    (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EIO;
		done += (size_t)got;
	}
	fwrite(block, 1, sizeof(block), out);
	return 0;
}

int rls_spool_copy(struct rls_spool *spool, uint32_t number, FILE *out)
{
	const struct text *text = number < spool->text_count ? &spool->texts[number] : NULL;
	int err = 0;

	for (size_t i = 0; text && !err && i < text->block_count; i++)
		err = copy_block(spool, text->offsets[i], out);
	if (text && !err && text->used)
		fwrite(text->block, 1, text->used, out);
	return err;
}
