# cmake -D INPUT=report.schema.json -D OUTPUT=schema.c -P schema.cmake
# The schema as a C string, byte by byte: no escaping to get wrong.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "((0x..,){16})" "\\1\n\t" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"analysis/report.h\"

static const char schema[] = {
	${bytes}0};

const char *rls_report_schema(void)
{
	return schema;
}
")
