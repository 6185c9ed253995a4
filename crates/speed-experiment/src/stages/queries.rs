//! The queries: single images of the pool, or groups of images, that the teachers label for the student.

use std::path::{Path, PathBuf};

use rand::seq::index::sample;
use serde_json::{Value, json};
use speed_core::random::Streams;
use speed_core::{VoteShape, Votes, VotesError, group_answer, most_frequent};

use super::complete::complete;
use super::context::Context;
use super::kind::Kind;
use super::map::MappedPool;
use super::stage::{Stage, StageFacts};
use super::votes::CollectedVotes;
use crate::config::{Config, QuerySelection as Selection, RowConfig};
use crate::error::ExperimentError;
use crate::npy;
use crate::report::csv;
use crate::store::{Fingerprint, FinishedStage, StageFolder, StageRemains};

pub(super) const KIND: &str = "queries";
/// The file of the pool indices: the image of each query, or the typical image of its group.
const QUERIES: &str = "queries.npy";
const GROUPS: &str = "groups.csv";

/// The queries of a run, or the first ones that a row answers, in the order of the answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryList<'a> {
    images: &'a [usize],
    groups: Option<&'a [Vec<usize>]>,
}

impl<'a> QueryList<'a> {
    /// Returns the pool index of each query: its image, or the typical image of its group.
    pub(crate) fn images(self) -> &'a [usize] {
        self.images
    }

    pub(crate) fn len(self) -> usize {
        self.images.len()
    }

    pub(crate) fn groups(self) -> Option<&'a [Vec<usize>]> {
        self.groups
    }

    /// Returns the images of a query: one image, or the images of its group.
    pub(crate) fn members(self, query: usize) -> &'a [usize] {
        self.groups.map_or_else(|| std::slice::from_ref(&self.images[query]), |groups| &groups[query])
    }

    /// Returns the right label of every query, from the true labels of the pool: that of its image, or the most frequent one of its
    /// group.
    pub(crate) fn truth(self, labels: &[u8]) -> Vec<u8> {
        let right = |query| most_frequent(self.members(query).iter().map(|&image| labels[image]));
        (0..self.len()).map(|query| right(query).expect("a query has images")).collect()
    }

    /// Returns each teacher's answers to the queries: its vote on an image, or its answer to a group ([`group_answer`]).
    pub(super) fn answers(self, votes: &Votes) -> Result<Votes, VotesError> {
        let teachers = votes.shape().teachers();
        let shape = VoteShape::new(teachers, self.len(), votes.shape().classes())?;
        let mut answers = Vec::with_capacity(shape.votes());
        for teacher in 0..teachers {
            let own = votes.teacher(teacher);
            let answer = |query| group_answer(self.members(query).iter().map(|&image| own[image]));
            answers.extend((0..self.len()).map(answer));
        }
        Votes::new(shape, answers)
    }
}

/// The answers of all teachers, teachers x queries.
pub(crate) struct TeacherAnswers(pub(crate) Votes);

impl TeacherAnswers {
    pub(crate) fn counts(&self, queries: usize) -> Vec<Vec<u32>> {
        (0..queries).map(|query| self.0.counts(query)).collect()
    }
}

pub(crate) struct Queries {
    images: Vec<usize>,
    groups: Option<Vec<Vec<usize>>>,
}

impl Queries {
    pub(crate) fn all(&self) -> QueryList<'_> {
        QueryList { images: &self.images, groups: self.groups.as_deref() }
    }

    pub(crate) fn of_row(&self, row: &RowConfig) -> QueryList<'_> {
        let count = row.query_count(self.images.len());
        QueryList { images: &self.images[..count], groups: self.groups.as_deref().map(|groups| &groups[..count]) }
    }

    fn read(stage: &dyn Fn(&str) -> PathBuf, config: &Config) -> Result<Self, ExperimentError> {
        let (count, pool) = (config.queries.count, config.data.pool_images);
        let images = npy::read_indices(&stage(QUERIES), count, pool)?;
        if !config.queries.groups {
            return Ok(Self { images, groups: None });
        }
        let path = stage(GROUPS);
        let text = std::fs::read_to_string(&path).map_err(ExperimentError::io("read", &path))?;
        let groups = parse_groups(&text, count, pool).ok_or_else(|| {
            let fault = "is not a list of groups of this run: remove the directory of the stage and run again";
            ExperimentError::results(path, fault)
        })?;
        Ok(Self { images, groups: Some(groups) })
    }
}

/// Reads `count` groups of images of the pool; an image is in at most one of them.
fn parse_groups(text: &str, count: usize, pool: usize) -> Option<Vec<Vec<usize>>> {
    let (mut groups, mut is_grouped) = (vec![Vec::new(); count], vec![false; pool]);
    for line in text.lines().skip(1) {
        let (query, image) = line.split_once(',')?;
        let (query, image): (usize, usize) = (query.parse().ok()?, image.parse().ok()?);
        if std::mem::replace(is_grouped.get_mut(image)?, true) {
            return None;
        }
        groups.get_mut(query)?.push(image);
    }
    groups.iter().all(|group| !group.is_empty()).then_some(groups)
}

/// Selects queries that are single images, without a map: pool indices, in the order of the answers. Returns `None` if the map
/// determines them.
pub(crate) fn select(config: &Config, streams: &Streams) -> Result<Option<Vec<usize>>, ExperimentError> {
    let (count, pool) = (config.queries.count, config.data.pool_images);
    Ok(Some(match config.queries.selection {
        Selection::First => (0..count).collect(),
        Selection::Random => sample(&mut streams.stream("queries", 0), pool, count).into_vec(),
        Selection::File => npy::read_indices(Path::new(&config.queries.file), count, pool)?,
        Selection::Clusters => return Ok(None),
    }))
}

/// Reads the queries of a run, if their stage is finished in `remains`.
pub(crate) fn chosen(remains: &StageRemains, config: &Config) -> Option<Queries> {
    Queries::read(&|file| remains.folder().join(file), config).ok()
}

pub(super) static QUERY_SELECTION: Kind = Kind::new(
    KIND,
    |_, _| true,
    |context, node, outputs| {
        let selected = select(context.config, &context.streams)?;
        let source = match (&selected, outputs.find::<MappedPool>()) {
            (None, Some(map)) => QuerySource::Map(map),
            (selected, _) => QuerySource::Images(selected.as_deref().unwrap_or_default()),
        };
        let queries = complete(context, &QueriesStage { name: &node.name, source })?;
        let votes = queries.all().answers(&outputs.get::<CollectedVotes>().votes)?;
        outputs.put(TeacherAnswers(votes));
        outputs.put(queries);
        Ok(())
    },
);

enum QuerySource<'a> {
    Images(&'a [usize]),
    Map(&'a MappedPool),
}

struct QueriesStage<'a> {
    name: &'a str,
    source: QuerySource<'a>,
}

impl Stage for QueriesStage<'_> {
    type Output = Queries;

    fn facts(&self) -> StageFacts<'_> {
        StageFacts::new(self.name)
    }

    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        let queries = &context.config.queries;
        Ok(match &self.source {
            QuerySource::Images(images) => json!(Fingerprint::of_bytes(&npy::indices_to_bytes(images))),
            QuerySource::Map(mapped) => {
                let groups = queries.groups;
                json!({ "map": mapped.hash, "clusters": queries.count, "groups": groups, "seed": context.config.seed })
            }
        })
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let mapped = match &self.source {
            QuerySource::Images(images) => {
                folder.write(QUERIES, &npy::indices_to_bytes(images))?;
                return Ok(vec![QUERIES.into()]);
            }
            QuerySource::Map(mapped) => mapped,
        };
        let count = context.config.queries.count;
        let clusters = mapped.clusters(context);
        if clusters.len() < count {
            let found = format!("the pool has {} different clusters", clusters.len());
            let fault = format!("{found}, expected {count}: reduce queries.count");
            return Err(ExperimentError::fault(format_args!("queries.selection = \"clusters\": {fault}")));
        }
        let typical: Vec<usize> = clusters.iter().map(|cluster| cluster.typical).collect();
        folder.write(QUERIES, &npy::indices_to_bytes(&typical))?;
        if !context.config.queries.groups {
            return Ok(vec![QUERIES.into()]);
        }
        let line = |(query, &image): (usize, &usize)| vec![query.to_string(), image.to_string()];
        let members =
            clusters.iter().enumerate().flat_map(|(query, cluster)| cluster.core().iter().map(move |i| (query, i)));
        folder.write(GROUPS, csv::write(["query", "pool_image"], members.map(line)).as_bytes())?;
        Ok(vec![QUERIES.into(), GROUPS.into()])
    }

    fn load(&self, context: &Context<'_>, done: &FinishedStage) -> Result<Queries, ExperimentError> {
        Queries::read(&|file| done.path(file), context.config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_teacher_answers_a_group_with_its_most_frequent_label() {
        let votes = Votes::new(VoteShape::new(2, 5, 3).expect("a shape"), vec![0_u8, 2, 2, 1, 1, 1, 1, 0, 0, 2])
            .expect("votes");
        let queries = Queries { images: vec![1, 3], groups: Some(vec![vec![1, 0, 2], vec![3, 4]]) };
        let answers = queries.all().answers(&votes).expect("answers");
        // The second teacher gives 1 to images 0 and 1 of the first group, and 0 and 2 in the second: a tie.
        assert_eq!(answers.all(), [2, 1, 1, 0].map(Some));
        assert_eq!(queries.all().truth(&[0, 0, 1, 2, 1]), [0, 1]);
        let single = Queries { images: vec![4, 0], groups: None };
        assert_eq!(single.all().answers(&votes).expect("answers").all(), [1, 0, 2, 1].map(Some));
        assert_eq!(single.all().truth(&[0, 0, 1, 2, 1]), [1, 0]);
        // An answer is empty if more than half of the votes on images are.
        let own = vec![None, Some(2_u8), None, None, None, Some(1), None, Some(0), Some(0), None];
        let votes = Votes::new(votes.shape(), own).expect("votes");
        assert_eq!(queries.all().answers(&votes).expect("answers").all(), [None, None, Some(0), Some(0)]);
        assert_eq!(single.all().answers(&votes).expect("answers").all(), [None, None, None, Some(1)]);
    }

    #[test]
    fn damaged_groups_are_refused() {
        let text = "query,pool_image\n0,3\n1,2\n0,1\n";
        assert_eq!(parse_groups(text, 2, 4), Some(vec![vec![3, 1], vec![2]]));
        for (text, count, pool) in
            [(text, 3, 4), (text, 1, 4), (text, 2, 3), ("h\n0,1\n1,1\n", 2, 4), ("h\n0;1\n", 1, 4)]
        {
            assert_eq!(parse_groups(text, count, pool), None, "{text}");
        }
    }
}
