#include "userspace/metrics/label.h"

#include <stdbool.h>
#include <string.h>

#include "analysis/base/utf8.h"

/* Legal in the format, but a page is also read in terminals. */
static bool is_control(unsigned char byte)
{
	return (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f;
}

void rls_label_clean(const char *text, char out[static RLS_LABEL_BYTES])
{
	size_t used = 0, left = strnlen(text, RLS_LABEL_BYTES);

	while (left) {
		struct rls_utf8_piece piece = is_control((unsigned char)*text)
						      ? rls_utf8_replaced()
						      : rls_utf8_piece(text, left);

		if (used + piece.bytes >= RLS_LABEL_BYTES)
			break;
		memcpy(out + used, piece.text, piece.bytes);
		used += piece.bytes;
		text += piece.taken;
		left -= piece.taken;
	}
	out[used] = '\0';
}

void rls_label_write(FILE *out, const char *name, const char *text)
{
	char clean[RLS_LABEL_BYTES];

	rls_label_clean(text, clean);
	fprintf(out, "%s=\"", name);
	for (const char *at = clean; *at; at++) {
		if (*at == '\\' || *at == '"')
			fputc('\\', out);
		if (*at == '\n')
			fputs("\\n", out);
		else
			fputc(*at, out);
	}
	fputc('"', out);
}
