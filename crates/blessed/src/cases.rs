//! Files of cases: what is said, and behind it the answers.

use crate::line::Line;
use crate::texts::{check_file, read};

/// Begins a line that is an answer to the one before it.
const ANSWER: &str = "=>";
/// Begins a line for people.
const COMMENT: &str = "#";
/// The first word of a conversation.
const CASE: &str = "case";

/// The cases at `path`, from the root of the tree, are answered as written. Empty lines part cases.
/// `answer` is given what a case says, comments and answers left out, and returns of each line what
/// is answered to it.
pub fn check_cases(path: &str, mut answer: impl FnMut(&[&str]) -> Vec<Vec<String>>) {
    let text = read(path);
    let blocks = text.split_inclusive("\n\n");
    check_file(path, &blocks.map(|block| answered(block, &mut answer)).collect::<String>());
}

/// The same of cases whose lines are said one by one: each begins with `case` and what it is about,
/// in a world of its own that `begin` makes.
pub fn check_conversations<World>(
    path: &str,
    begin: impl Fn() -> World,
    say: impl Fn(&mut World, &Line<'_>) -> Vec<String>,
) {
    check_cases(path, |lines| {
        assert!(lines[0].starts_with(CASE), "{path}: `{}` does not begin a case", lines[0]);
        let mut world = begin();
        let say = |line: &&str| {
            let _named = NameOnPanic { path, case: lines[0], line };
            say(&mut world, &Line::parse(line))
        };
        let answers = lines[1..].iter().map(say);
        std::iter::once(Vec::new()).chain(answers).collect()
    });
}

/// A block of the file with the answers that it should have.
fn answered(block: &str, answer: &mut impl FnMut(&[&str]) -> Vec<Vec<String>>) -> String {
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with(COMMENT);
    let lines = || block.lines().filter(|line| !line.starts_with(ANSWER));
    let said: Vec<&str> = lines().filter(is_said).collect();
    if said.is_empty() {
        return block.to_owned();
    }
    let answers = answer(&said);
    assert_eq!(answers.len(), said.len(), "each line has its answers: {said:?}");
    let mut answers = answers.into_iter();
    let mut text = String::new();
    for line in lines() {
        text += &format!("{line}\n");
        if is_said(&line) {
            let answers = answers.next().into_iter().flatten();
            answers.for_each(|answer| text += &format!("{}\n", format_answer(&answer)));
        }
    }
    text
}

fn format_answer(answer: &str) -> String {
    format!("{ANSWER} {answer}").trim_end().to_owned()
}

/// Says which line was said when a test panics.
struct NameOnPanic<'a> {
    path: &'a str,
    case: &'a str,
    line: &'a str,
}

impl Drop for NameOnPanic<'_> {
    #[expect(clippy::print_stdout, reason = "for whoever reads of the test that has failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}: {}: {}", self.path, self.case, self.line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shouted(lines: &[&str]) -> Vec<Vec<String>> {
        lines.iter().map(|line| vec![line.to_uppercase(); line.len() / 2]).collect()
    }

    #[test]
    fn answers_are_put_behind_what_they_answer_and_old_ones_go() {
        let block = "# about\na\n=> old\nab\nabcd\n=> ABCD\n\n";
        let expected = "# about\na\nab\n=> AB\nabcd\n=> ABCD\n=> ABCD\n\n";
        assert_eq!(answered(block, &mut shouted), expected);
        assert_eq!(answered(expected, &mut shouted), expected, "they stay as they are");
    }

    #[test]
    fn comments_alone_are_no_case() {
        let block = "# one\n# two\n\n";
        assert_eq!(answered(block, &mut |_: &[&str]| panic!("nothing is said")), block);
    }
}
