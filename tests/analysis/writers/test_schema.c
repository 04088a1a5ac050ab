/* JSON keeps to its schema, and the schema to the tables. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/base/cleanup.h"
#include "analysis/report/tables.h"
#include "tests/analysis/writers/full_report.h"

static const json_t *resolve(const json_t *root, const json_t *schema)
{
	const char *name = json_string_value(json_object_get(schema, "$ref"));

	if (!name)
		return schema;
	assert_memory_equal(name, "#/$defs/", 8);
	return json_object_get(json_object_get(root, "$defs"), name + 8);
}

static bool has_type(const json_t *value, const char *type)
{
	return (!strcmp(type, "object") && json_is_object(value)) ||
	       (!strcmp(type, "array") && json_is_array(value)) ||
	       (!strcmp(type, "string") && json_is_string(value)) ||
	       (!strcmp(type, "boolean") && json_is_boolean(value)) ||
	       (!strcmp(type, "integer") && json_is_integer(value)) ||
	       (!strcmp(type, "number") && json_is_number(value)) ||
	       (!strcmp(type, "null") && json_is_null(value));
}

static bool has_one_of(const json_t *value, const json_t *types)
{
	bool found = false;
	json_t *type;
	size_t i;

	if (json_is_string(types))
		return has_type(value, json_string_value(types));
	json_array_foreach(types, i, type) found =
		found || has_type(value, json_string_value(type));
	return found;
}

static void validate(const json_t *root, const json_t *schema, const json_t *value);

static void validate_object(const json_t *root, const json_t *schema, const json_t *value)
{
	const json_t *properties = json_object_get(schema, "properties");
	const json_t *additional = json_object_get(schema, "additionalProperties");
	const char *key;
	json_t *member, *name;
	size_t i;

	json_array_foreach(json_object_get(schema, "required"), i, name)
	{
		if (!json_object_get(value, json_string_value(name)))
			fail_msg("%s is missing", json_string_value(name));
	}
	json_object_foreach((json_t *)value, key, member)
	{
		const json_t *known = json_object_get(properties, key);

		if (known)
			validate(root, known, member);
		else if (json_is_object(additional))
			validate(root, additional, member);
		else if (json_is_false(additional))
			fail_msg("%s is not in the schema", key);
	}
}

/* As much of JSON Schema as this schema uses. */
static void validate(const json_t *root, const json_t *schema, const json_t *value)
{
	const json_t *choices, *minimum, *constant;
	json_t *item;
	size_t i;

	schema = resolve(root, schema);
	choices = json_object_get(schema, "enum");
	minimum = json_object_get(schema, "minimum");
	constant = json_object_get(schema, "const");
	if (json_object_get(schema, "type"))
		assert_true(has_one_of(value, json_object_get(schema, "type")));
	if (constant)
		assert_true(json_equal(constant, value));
	if (minimum && !json_is_null(value))
		assert_true(json_number_value(value) >= json_number_value(minimum));
	if (choices) {
		bool found = false;

		json_array_foreach(choices, i, item) found = found || json_equal(item, value);
		assert_true(found);
	}
	if (json_is_object(value))
		validate_object(root, schema, value);
	if (!json_is_array(value) || !json_object_get(schema, "items"))
		return;
	json_array_foreach(value, i, item) validate(root, json_object_get(schema, "items"), item);
}

static void test_json_keeps_to_the_schema(void **unused)
{
	struct script script;
	struct rls_report *report = full_report(&script);
	char *text = render(report, "json", NULL);
	json_t *schema = json_loads(rls_report_schema(), JSON_REJECT_DUPLICATES, NULL);
	json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const json_t *process;

	assert_non_null(schema);
	assert_non_null(value);
	validate(schema, schema, value);
	process = json_array_get(json_object_get(value, "processes"), 0);
	assert_string_equal(json_string_value(json_object_get(process, "name")),
			    "name, \"quoted\"\n\x1b[31m and \xe2\x80\xae turned");
	assert_int_equal(json_integer_value(json_object_get(process, "ns_pid")), 5);
	assert_int_equal(json_array_size(json_object_get(process, "cmdline")), 2);
	assert_int_equal(json_array_size(json_object_get(json_object_get(value, "host"), "gpus")),
			 2);
	assert_null(json_object_get(value, "lines"));
	json_decref(schema);
	json_decref(value);
	free(text);
	rls_report_free(report);
	script_end(&script);
}

static bool is_required(const json_t *items, const char *name)
{
	json_t *required;
	size_t i;

	json_array_foreach(json_object_get(items, "required"), i, required)
	{
		if (!strcmp(json_string_value(required), name))
			return true;
	}
	return false;
}

/* What a column's values are, by the schema's words. */
static const char *schema_type(const struct rls_column *column)
{
	switch (column->type) {
	case RLS_COLUMN_U32:
	case RLS_COLUMN_U64:
	case RLS_COLUMN_I32:
	case RLS_COLUMN_I64:
		return "integer";
	case RLS_COLUMN_DOUBLE:
		return "number";
	case RLS_COLUMN_BOOL:
		return "boolean";
	case RLS_COLUMN_STRINGS:
		return "array";
	default:
		return "string";
	}
}

static void check_column(const json_t *schema, const json_t *items, const struct rls_table *table,
			 const struct rls_column *column)
{
	const json_t *known = json_object_get(json_object_get(items, "properties"), column->name);
	json_t *null = json_null();
	const json_t *types, *value;
	bool nullable;

	if (!known)
		fail_msg("the schema's %s lacks \"%s\": {\"type\": \"%s\"}", table->name,
			 column->name, schema_type(column));
	if (is_required(items, column->name) == !!(column->flags & RLS_OPTIONAL))
		fail_msg("%s.%s is %s", table->name, column->name,
			 column->flags & RLS_OPTIONAL ? "optional" : "required");
	known = resolve(schema, known);
	types = json_object_get(known, "type");
	value = json_array_get(json_object_get(known, "enum"), 0);
	if (value) { /* words */
		assert_string_equal(schema_type(column), "string");
		assert_true(json_is_string(value));
		return;
	}
	nullable = has_one_of(null, types);
	if (nullable != !!(column->flags & RLS_NULLABLE))
		fail_msg("%s.%s %s null", table->name, column->name,
			 nullable ? "may not be" : "may be");
	if (json_is_array(types))
		types = json_array_get(types, 0);
	assert_string_equal(json_string_value(types), schema_type(column));
}

/* Every column of the table, and nothing else but the arrays that its rows hold. */
static void check_items(const json_t *schema, const json_t *items, const struct rls_table *table)
{
	size_t columns = 0, inner = 0;

	for (size_t i = 0; i < table->column_count; i++) {
		if (table->columns[i].flags & (RLS_HIDDEN | RLS_OUTER))
			continue;
		check_column(schema, items, table, &table->columns[i]);
		columns++;
	}
	for (int i = 0; i < RLS_TABLE_MAX; i++) {
		const struct rls_table *held = &rls_report_tables[i];
		const json_t *array =
			held->json_name ? json_object_get(json_object_get(items, "properties"),
							  held->json_name)
					: NULL;

		if (!held->json_name || &rls_report_tables[held->outer] != table)
			continue;
		assert_non_null(array);
		check_items(schema, json_object_get(array, "items"), held);
		inner++;
	}
	assert_int_equal(json_object_size(json_object_get(items, "properties")), columns + inner);
}

/* A column that the schema does not know, or takes for something else, or the other way round. */
static void test_tables_are_the_schema(void **unused)
{
	json_t *schema = json_loads(rls_report_schema(), 0, NULL);
	const json_t *properties = json_object_get(schema, "properties");

	for (int table = 0; table < RLS_TABLE_MAX; table++) {
		const struct rls_table *of = &rls_report_tables[table];
		const json_t *array = json_object_get(properties, of->name);
		bool required = of->json_when == RLS_JSON_ALWAYS;

		if (!of->json)
			continue;
		if (!array)
			fail_msg("the schema lacks \"%s\"", of->name);
		check_items(schema, json_object_get(array, "items"), of);
		assert_int_equal(is_required(schema, of->name), required);
	}
	json_decref(schema);
}

/* What table_rows.c takes for granted of a descriptor. */
static void test_tables_are_sound(void **unused)
{
	bool places[RLS_TABLE_MAX + 1] = {false};

	for (int i = 0; i < RLS_TABLE_ALL; i++) {
		const struct rls_table *table = &rls_report_tables[i];
		bool summed = table->flags & (RLS_TABLE_GROUPED | RLS_TABLE_DISTINCT);
		unsigned int keys = 0;

		assert_true(table->columns && table->column_count);
		assert_int_equal(i < RLS_TABLE_MAX, table->name != NULL);
		assert_true(!table->inner || !rls_report_tables[table->outer].inner);
		assert_true(table->json <= RLS_TABLE_MAX && (!table->json || !places[table->json]));
		places[table->json] = true;
		for (size_t k = 0; k < table->column_count; k++) {
			const struct rls_column *column = &table->columns[k];

			assert_true(column->key <= 8 &&
				    !(keys & 1u << column->key >> 1 && column->key));
			keys |= column->key ? 1u << (column->key - 1) : 0;
			/* A row that is summed into another one is dropped as it is. */
			assert_false(summed && column->type == RLS_COLUMN_STRINGS);
			assert_true(!(column->flags & RLS_SUM) || column->type == RLS_COLUMN_U64 ||
				    column->type == RLS_COLUMN_DOUBLE);
			assert_true(!(column->flags & RLS_WORST) ||
				    column->type == RLS_COLUMN_METHOD ||
				    column->type == RLS_COLUMN_MEMORY_METHOD);
			assert_true(!(column->flags & RLS_INSTANT) ||
				    column->type == RLS_COLUMN_U64);
			assert_true(!(column->flags & (RLS_PID | RLS_FRAME)) ||
				    column->type == RLS_COLUMN_U32);
			assert_true(!(column->flags & RLS_NULLABLE) ||
				    column->type == RLS_COLUMN_U64 ||
				    column->type == RLS_COLUMN_DOUBLE);
			assert_true(!(column->flags & RLS_OUTER) || table->inner);
			/* Blanked, and no longer distinguished by it: so it must be a key. */
			assert_true(
				!(column->flags &
				  (RLS_BY_THREAD | RLS_BY_PHASE | RLS_BY_OPERATION | RLS_BY_PLACE |
				   RLS_BY_FILE | RLS_BY_FUNCTION | RLS_BY_LINE)) ||
				column->key);
		}
		/* 1, 2, 3, without a gap. */
		assert_int_equal(keys & (keys + 1), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_keeps_to_the_schema),
		cmocka_unit_test(test_tables_are_the_schema),
		cmocka_unit_test(test_tables_are_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
