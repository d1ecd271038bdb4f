// Rules about documents (*.md): short lines and sentences, bounded size, whole headings and tables,
// and links and names that lead somewhere. Thread: any.
//
// Text means what a reader reads as prose: paragraphs, list items and quotes. Headings, tables and
// code are not text.
#ifndef NOWCALLS_TIDY_DOCUMENT_RULES_H_
#define NOWCALLS_TIDY_DOCUMENT_RULES_H_

#include <set>
#include <string>
#include <vector>

#include "tidy/include_rules.h"
#include "tidy/source_file.h"

namespace nowcalls::tidy {

inline constexpr int kDocumentColumnsMax = 120;
inline constexpr int kSentenceWordsMax = 40;

struct Document {
  std::string path;  // Relative to the source tree, e.g. "src/README.md".
  std::string text;
};

// Every *.md of the tree by path, without build/ and folders whose names begin with a dot.
std::vector<Document> LoadDocuments(const std::string& root);

// Paths of all files and folders of the tree, with the same exceptions.
std::set<std::string> LoadPaths(const std::string& root);

// Lines have at most 120 characters. Rows of tables may be longer.
Findings CheckDocumentLines(const Document& document);

// README.md, src/README.md, tests/README.md, the READMEs of modules and the pages of the manual
// have at most so many lines, README.md also so many words.
Findings CheckDocumentSize(const Document& document);

// A sentence ends at `.`, `!`, `?` or `:` before a blank, or where its paragraph or item ends.
Findings CheckSentences(const Document& document);

// A numbered decision of src/MODULE/README.md ("### 3. Title") has at most 10 lines of text.
Findings CheckDecisions(const Document& document);

// A document begins with its only heading of the first level. "#" to "######" are followed by one
// blank and a title without blanks around it or before a colon, and no level is left out.
Findings CheckHeadings(const Document& document);

// A row of a table begins and ends with '|' and has as many cells as the row of dashes that follows
// the table's head. A '|' within `code` or behind a backslash divides nothing.
Findings CheckTables(const Document& document);

// What drifts because nobody reads it again: promises ("will come"), and lists of who may include a
// room, which is what the table in src/README.md is for. Of documents below src/.
Findings CheckPhrases(const Document& document);

// A class that the first column of a table in src/MODULE/README.md names is one of the module:
// `sources` has it as a word in a file below src/MODULE/ or include/.
Findings CheckClassNames(const Document& document, const std::vector<SourceFile>& sources);

// Relative links lead to one of `paths`, and anchors to a heading of their document. Links to the
// web are not followed.
Findings CheckLinks(const std::vector<Document>& documents, const std::set<std::string>& paths);

// Sources and documents that a document names in `code` exist: by a path from the top, from src/,
// tests/, include/ or its own folder, or by their name alone. The notebook may name what is gone.
Findings CheckFileNames(const Document& document, const std::set<std::string>& paths);

}  // namespace nowcalls::tidy

#endif  // NOWCALLS_TIDY_DOCUMENT_RULES_H_
