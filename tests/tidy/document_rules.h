// Rules about documents (*.md): short lines and sentences, bounded size, and links that lead
// somewhere. Thread: any.
//
// Text means what a reader reads as prose: paragraphs, list items and quotes. Headings, tables and
// code are not text.
#ifndef NOWCALLS_TIDY_DOCUMENT_RULES_H_
#define NOWCALLS_TIDY_DOCUMENT_RULES_H_

#include <set>
#include <string>
#include <vector>

#include "tidy/include_rules.h"

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

// Relative links lead to one of `paths`, and anchors to a heading of their document. Links to the
// web are not followed.
Findings CheckLinks(const std::vector<Document>& documents, const std::set<std::string>& paths);

// Sources and documents that a document names in `code` exist: by a path from the top, from src/,
// tests/, include/ or its own folder, or by their name alone. The notebook may name what is gone.
Findings CheckFileNames(const Document& document, const std::set<std::string>& paths);

}  // namespace nowcalls::tidy

#endif  // NOWCALLS_TIDY_DOCUMENT_RULES_H_
