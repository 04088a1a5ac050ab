/* A comparison as a page: the JSON form as its data block, and html/compare.js that shows it as
 * grouped bars. No figure is made here that JSON does not have.
 */
#include "analysis/writers/compare/compare_writers.h"
#include "analysis/writers/embedded.h"
#include "analysis/writers/html/html_page.h"

void rls_compare_write_html(FILE *out, const struct rls_compare_side *sides, size_t count,
			    const struct rls_compare_options *options)
{
	static const char *const scripts[] = {rls_dom_js, rls_bars_js, rls_compare_js, NULL};
	FILE *stream;

	rls_html_begin(out, "Comparison", rls_compare_html);
	stream = rls_html_data_open(out, "model");
	if (!stream)
		return;
	rls_compare_write_json(stream, sides, count, options);
	if (!rls_html_data_close(out, stream))
		rls_html_end(out, scripts);
}
