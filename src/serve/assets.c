#include "serve/assets.h"

#include <string.h>

#include "base/own.h"

/* The assembler puts the files in; the Makefile knows that this object is made of them. */
#define FILE_IN(symbol, path)                                                                                          \
    __asm__(".section .rodata\n.global asset_" #symbol "\n.global asset_" #symbol "_end\nasset_" #symbol               \
            ":\n.incbin \"" path "\"\nasset_" #symbol "_end:\n.byte 0\n.previous\n");                                  \
    extern const char asset_##symbol[], asset_##symbol##_end[]

FILE_IN(css, "src/serve/assets/page.css");
FILE_IN(icon, "src/serve/assets/icon.svg");
FILE_IN(js, "src/serve/assets/page.js");

static const struct asset assets[] = {
    { "icon.svg", "image/svg+xml", asset_icon, asset_icon_end },
    { "page.css", "text/css; charset=utf-8", asset_css, asset_css_end },
    { "page.js", "text/javascript; charset=utf-8", asset_js, asset_js_end },
};

const struct asset *asset_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(assets); i++)
        if (strcmp(assets[i].name, name) == 0)
            return &assets[i];
    return NULL;
}
