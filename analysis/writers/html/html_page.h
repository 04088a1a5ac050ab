/* HTML pages: one file each, complete without any other, that opens from disk and loads
 * nothing.
 *
 *     rls_html_begin(out, title, body);
 *     stream = rls_html_data_open(out, "model");  ... JSON into it ...
 *     err = rls_html_data_close(out, stream);
 *     rls_html_end(out, scripts);
 *
 * A content security policy in the page forbids it every connection. What comes from the
 * target goes into data blocks only, which no browser runs, and the scripts of html/ show it
 * as text, never as markup.
 */
#ifndef RLS_HTML_PAGE_H
#define RLS_HTML_PAGE_H

#include <stdio.h>

/* Head with the title (any UTF-8) and the style of html/style.css, then the body's markup,
 * which must be ours. */
void rls_html_begin(FILE *out, const char *title, const char *body);

/* A data block, to be found by its id: valid JSON printed into the stream, whatever its
 * strings hold. NULL when there is no memory. */
FILE *rls_html_data_open(FILE *out, const char *id);
/* Closes the stream. 0, or -errno when writing to it failed. */
int rls_html_data_close(FILE *out, FILE *stream);

/* The scripts, run in this order once the page is there; the list ends with NULL. */
void rls_html_end(FILE *out, const char *const *scripts);

#endif
