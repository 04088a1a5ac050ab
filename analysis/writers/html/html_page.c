#include "analysis/writers/html/html_page.h"

#include <errno.h>
#include <string.h>

#include "analysis/writers/embedded.h"

/* Prints a template up to its next mark, and steps over that. */
static const char *print_up_to(FILE *out, const char *template, const char *mark)
{
	const char *found = strstr(template, mark);

	if (!found) {
		fputs(template, out);
		return "";
	}
	fwrite(template, 1, (size_t)(found - template), out);
	return found + strlen(mark);
}

static void print_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		default:
			putc(*text, out);
		}
	}
}

void rls_html_begin(FILE *out, const char *title, const char *body)
{
	const char *rest = print_up_to(out, rls_page_html, "{{title}}");

	print_text(out, title);
	rest = print_up_to(out, rest, "{{style}}");
	fputs(rls_style_css, out);
	rest = print_up_to(out, rest, "{{body}}");
	fputs(body, out);
	fputs(rest, out);
}

/* In JSON a '<' is always inside a string, where it has another spelling; without one, no
 * string can end the block or begin a comment. */
static ssize_t write_escaped(void *cookie, const char *bytes, size_t count)
{
	FILE *out = cookie;

	for (size_t done = 0; done < count;) {
		const char *from = bytes + done;
		const char *found = memchr(from, '<', count - done);
		size_t plain = found ? (size_t)(found - from) : count - done;

		if (fwrite(from, 1, plain, out) != plain || (found && fputs("\\u003c", out) < 0))
			return 0;
		done += plain + !!found;
	}
	return (ssize_t)count;
}

FILE *rls_html_data_open(FILE *out, const char *id)
{
	fprintf(out, "<script type=\"application/json\" id=\"%s\">", id);
	return fopencookie(out, "w", (cookie_io_functions_t){.write = write_escaped});
}

int rls_html_data_close(FILE *out, FILE *stream)
{
	int err = ferror(stream) ? -EIO : 0;

	if (fclose(stream) && !err)
		err = errno ? -errno : -EIO;
	fputs("</script>\n", out);
	return err;
}

void rls_html_end(FILE *out, const char *const *scripts)
{
	fputs("<script>\n\"use strict\";\n", out);
	for (; *scripts; scripts++)
		fputs(*scripts, out);
	fputs("</script>\n</body>\n</html>\n", out);
}
