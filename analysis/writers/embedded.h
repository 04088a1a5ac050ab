/* Files of this folder that are part of the program: each is a string, made by embed.cmake. */
#ifndef RLS_EMBEDDED_H
#define RLS_EMBEDDED_H

extern const char rls_report_schema_json[]; /* report.schema.json */

/* html/ */
extern const char rls_page_html[];
extern const char rls_style_css[];
extern const char rls_report_html[];
extern const char rls_dom_js[];
extern const char rls_bars_js[];
extern const char rls_table_js[];
extern const char rls_model_js[];
extern const char rls_sections_js[];
extern const char rls_timeline_js[];
extern const char rls_memory_js[];
extern const char rls_report_js[];
extern const char rls_compare_html[];
extern const char rls_compare_js[];

#endif
