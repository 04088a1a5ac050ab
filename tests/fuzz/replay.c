/* Runs a fuzz target without a fuzzer: on every file of a corpus folder, and on random
 * changes of each. Each change depends on its number alone, so a failure can be repeated.
 *
 *     replay CORPUS [CHANGES]
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"

#define INPUT_BYTES_MAX (1u << 20)
#define CHANGES 300

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32) % below;
}

/* Changes some bytes, or cuts, or repeats a stretch. Returns the new size. */
static size_t change(uint8_t *data, size_t size)
{
	static const uint8_t varied[] = {0, 1, 0x7f, 0x80, 0xff, '"', '{', '\\', '\n', '9'};

	for (uint32_t edits = 1 + draw(4); size > 1 && edits; edits--) {
		size_t at = draw(size), length = 1 + draw(size - at < 16 ? size - at : 16);

		switch (draw(5)) {
		case 0:
			data[at] ^= 1u << draw(8);
			break;
		case 1:
			data[at] = varied[draw(sizeof(varied))];
			break;
		case 2:
			data[at] += draw(2) ? 1 : -1;
			break;
		case 3:
			memmove(data + at, data + at + length, size - at - length);
			size -= length;
			break;
		default:
			memmove(data + at + length, data + at, size - at);
			size += length;
		}
	}
	return size;
}

static int run_file(const char *path, unsigned int changes)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	/* Four edits lengthen it by 64 at most; exact copies let sanitizers see overruns. */
	_cleanup_free_ uint8_t *data = malloc(INPUT_BYTES_MAX);
	_cleanup_free_ uint8_t *changed = malloc(INPUT_BYTES_MAX + 64);
	size_t size = file && data && changed ? fread(data, 1, INPUT_BYTES_MAX, file) : 0;

	if (!file || !data || !changed)
		return 1;
	LLVMFuzzerTestOneInput(data, size);
	for (unsigned int i = 0; i < changes && size; i++) {
		random_state = 0x9e3779b97f4a7c15ull * (i + 1);
		memcpy(changed, data, size);

		size_t changed_size = change(changed, size);
		_cleanup_free_ uint8_t *exact = malloc(changed_size + !changed_size);

		if (!exact)
			return 1;
		memcpy(exact, changed, changed_size);
		LLVMFuzzerTestOneInput(exact, changed_size);
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int changes = argc > 2 ? strtoul(argv[2], NULL, 10) : CHANGES, files = 0;
	DIR *folder = argc > 1 ? opendir(argv[1]) : NULL;

	if (!folder) {
		fprintf(stderr, "usage: %s CORPUS [CHANGES]\n", argv[0]);
		return 2;
	}
	for (struct dirent *entry; (entry = readdir(folder));) {
		char path[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		if (run_file(path, changes))
			return 1;
		files++;
	}
	closedir(folder);
	printf("%u inputs, %u changes of each\n", files, changes);
	return files ? 0 : 1;
}
