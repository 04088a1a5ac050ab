#include "userspace/base/config_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/log.h"

static const char blanks[] = " \t\r\n";

bool rls_config_is_word(const char *value)
{
	return *value && !value[strcspn(value, blanks)];
}

/* False when nothing is on it. */
static bool split_line(char *text, struct rls_config_line *line)
{
	size_t end, word;

	text += strspn(text, blanks);
	end = strcspn(text, "#");
	while (end && strchr(blanks, text[end - 1]))
		end--;
	text[end] = '\0';
	word = strcspn(text, blanks);
	line->word = text;
	line->value = text + word + strspn(text + word, blanks);
	text[word] = '\0';
	return word > 0;
}

int rls_config_lines_read(FILE *file, const char *path,
			  int (*take)(void *context, const struct rls_config_line *line),
			  void *context)
{
	struct rls_config_line line = {.path = path};
	_cleanup_free_ char *text = NULL;
	size_t capacity = 0;
	ssize_t length;
	int r = 0;

	while (!r && (length = getline(&text, &capacity, file)) >= 0) {
		line.number++;
		if (memchr(text, '\0', length))
			return rls_error_r(-EINVAL, "%s, line %u: this is no text file", path,
					   line.number);
		if (split_line(text, &line))
			r = take(context, &line);
	}
	if (!r && ferror(file))
		return rls_error_r(-EIO, "cannot read %s: %s", path, strerror(errno));
	return r;
}
