#include "userspace/commands/shared/print_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/utf8.h"

json_t *rls_json_text(const char *text)
{
	size_t left = strlen(text), used = 0;
	_cleanup_free_ char *clean = malloc(left * rls_utf8_replaced().bytes + 1);

	if (!clean)
		return NULL;
	while (left) {
		struct rls_utf8_piece piece = rls_utf8_piece(text, left);

		memcpy(clean + used, piece.text, piece.bytes);
		used += piece.bytes;
		text += piece.taken;
		left -= piece.taken;
	}
	return json_stringn(clean, used);
}

int rls_print_json(json_t *root, size_t indent)
{
	int r;

	if (!root)
		return -ENOMEM;
	r = json_dumpf(root, stdout, JSON_INDENT(indent));
	json_decref(root);
	putchar('\n');
	return r && !ferror(stdout) ? -ENOMEM : 0;
}
