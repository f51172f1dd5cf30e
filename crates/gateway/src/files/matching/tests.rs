//! Which files match a query, and which of them come first.

use bowline_proto::files::FileKind;

use super::*;

fn tree(paths: &[&str]) -> Tree {
    let file = |path: &&str| TreeFile { path: (*path).into(), kind: FileKind::File };
    Tree { files: paths.iter().map(file).collect(), truncated: false }
}

fn list(tree: &Tree, query: &str, limit: usize) -> FileList {
    best(tree, &Pattern::new(query), limit, Duration::from_secs(60), &CancellationToken::new())
}

/// The paths that match, best first.
fn ranked(query: &str, paths: &[&str]) -> Vec<String> {
    list(&tree(paths), query, 100).files.into_iter().map(|file| file.path).collect()
}

#[test]
fn a_path_matches_if_it_has_the_characters_in_their_order() {
    let paths = ["src/main.rs", "src/lib.rs", "docs/Main page.md", "Ünï/straße.txt"];
    assert_eq!(ranked("smr", &paths), ["src/main.rs"]);
    assert_eq!(ranked("MAIN", &paths), ["src/main.rs", "docs/Main page.md"]);
    assert_eq!(ranked("src/l", &paths), ["src/lib.rs"]);
    assert_eq!(ranked("üST", &paths), ["Ünï/straße.txt"]);
    assert_eq!(ranked("main p", &paths), ["docs/Main page.md"]);
    assert!(ranked("niam", &paths).is_empty() && ranked("src/main.rs2", &paths).is_empty());
}

#[test]
fn a_run_of_characters_is_better_than_scattered_ones() {
    assert_eq!(ranked("main", &["m/a/i/n", "src/domain.rs"]), ["src/domain.rs", "m/a/i/n"]);
    assert_eq!(ranked("conf", &["c_o_n_f.rs", "config.rs", "coven fig.rs"])[0], "config.rs");
    assert_eq!(ranked("log", &["lib/org.rs", "catalog.rs"]), ["catalog.rs", "lib/org.rs"]);
}

#[test]
fn the_beginnings_of_names_and_words_are_better_than_what_is_inside() {
    assert_eq!(ranked("test", &["latest.rs", "my_test.rs", "test.rs"]), ["test.rs", "my_test.rs", "latest.rs"]);
    assert_eq!(ranked("ns", &["answer.ts", "NewSession.svelte"])[0], "NewSession.svelte", "words of a camel case name");
    assert_eq!(ranked("v2", &["v12.md", "api-v2.md"])[0], "api-v2.md");
}

#[test]
fn the_last_name_is_better_than_a_folder() {
    assert_eq!(ranked("walk", &["walk/mod.rs", "files/walk.rs"]), ["files/walk.rs", "walk/mod.rs"]);
    assert_eq!(ranked("api/b", &["api/x/bodies.ts", "api/bodies.ts"])[0], "api/bodies.ts");
}

#[test]
fn of_equally_good_paths_the_shorter_comes_first_and_then_the_alphabet_decides() {
    let paths = ["deep/er/main.rs", "b/main.rs", "main.rs.orig", "a/main.rs", "main.rs"];
    let expected = ["main.rs", "a/main.rs", "b/main.rs", "main.rs.orig", "deep/er/main.rs"];
    assert_eq!(ranked("main.rs", &paths), expected);
}

#[test]
fn the_best_of_several_places_counts() {
    // The first `a` and `b` are far from each other.
    assert_eq!(ranked("ab", &["a/xxxxxxxxxxxxxxxxxxxxxxxxxx/b/ab", "xa-xb"])[0], "a/xxxxxxxxxxxxxxxxxxxxxxxxxx/b/ab");
}

#[test]
fn an_empty_query_lists_the_top_by_name() {
    let paths = ["b", "A", "src", "c.rs", "src/main.rs"];
    assert_eq!(ranked("", &paths), ["A", "b", "c.rs", "src"]);
    assert_eq!(ranked("./", &paths), ["A", "b", "c.rs", "src"]);
    assert_eq!(ranked("./main", &paths), ["src/main.rs"]);
}

#[test]
fn only_a_name_that_begins_with_a_dot_is_hidden() {
    for query in [".", ".env", "./.env", "src/.e", "a/.", "../.git"] {
        assert!(Pattern::new(query).names_hidden(), "{query}");
    }
    for query in ["", "a.rs", "main.", "..", "../x", "a/../b", "./x"] {
        assert!(!Pattern::new(query).names_hidden(), "{query}");
    }
}

#[test]
fn a_list_says_if_there_is_more() {
    let tree = tree(&["a1", "a2", "a3"]);
    let listed = |limit| list(&tree, "a", limit);
    assert_eq!((listed(3).files.len(), listed(3).truncated), (3, false));
    assert_eq!((listed(2).files.len(), listed(2).truncated), (2, true));
    assert!(list(&Tree { truncated: true, ..tree }, "a1", 9).truncated, "the tree has more than is known");
}

/// The names are those of a hostile agent, and the query is that of a hostile reader.
#[test]
fn r52_long_queries_and_paths_are_compared_within_bounds() {
    let paths = vec!["a".repeat(1024); 8000];
    let tree = tree(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    let (begun, stop) = (Instant::now(), CancellationToken::new());
    let pattern = Pattern::new(&"a".repeat(128));
    let listed = best(&tree, &pattern, 50, Duration::from_millis(100), &stop);
    assert!(listed.truncated && begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    stop.cancel();
    assert!(best(&tree, &pattern, 50, Duration::from_secs(60), &stop).files.is_empty(), "no caller waits for it");
}
