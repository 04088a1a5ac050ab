# cmake -D INPUT=style.css -D NAME=rls_style_css -D OUTPUT=style.css.c -P embed.cmake
# A file as a C string, byte by byte: no escaping to get wrong.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "((0x..,){16})" "\\1\n\t" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"analysis/writers/embedded.h\"

const char ${NAME}[] = {
	${bytes}0};
")
