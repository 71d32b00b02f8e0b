//! Axes: what a tensor's dimensions are called and how long they are.
//!
//! Inside a function an axis is an [`AxisId`], unique by name *and* extent; sets of axes are bit sets, since the free axes of
//! a term are what every analysis asks for.

use std::fmt;

/// An axis of one function: an index into [`crate::Func::axes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AxisId(pub u8);

/// The largest number of axes in one function.
pub const MAX_AXES: usize = 64;

/// A declared axis: its name and its extent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AxisDecl {
    /// Name as written. Two axes of a function may share a name only if their extents differ (a slice of `j` is called `j`).
    pub name: String,
    /// How long it is.
    pub extent: Extent,
}

/// The length of an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// Known when the function is written.
    Fixed(u64),
    /// Known at the call, from the shape of an input; the symbol is the axis' name.
    Symbolic,
    /// Computed from other axes' lengths: what slices, merges, splits and concatenations yield.
    Derived(SizeExpr),
}

/// An expression over the sizes of axes. Divisions round up where `DivCeil` says so and must be exact where `DivExact` does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SizeExpr {
    /// A number.
    Const(i64),
    /// The size of an axis.
    Axis(AxisId),
    /// A sum.
    Add(Box<SizeExpr>, Box<SizeExpr>),
    /// A difference.
    Sub(Box<SizeExpr>, Box<SizeExpr>),
    /// A product.
    Mul(Box<SizeExpr>, Box<SizeExpr>),
    /// A quotient rounded up.
    DivCeil(Box<SizeExpr>, Box<SizeExpr>),
    /// A quotient that must have no remainder; it is an error at the call if it has.
    DivExact(Box<SizeExpr>, Box<SizeExpr>),
}

/// A set of axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct AxisSet(pub u64);

impl AxisSet {
    /// The empty set.
    pub const EMPTY: AxisSet = AxisSet(0);

    /// The set of one axis.
    pub fn one(axis: AxisId) -> AxisSet {
        AxisSet(1 << axis.0)
    }

    /// Whether the axis is a member.
    pub fn contains(self, axis: AxisId) -> bool {
        self.0 >> axis.0 & 1 == 1
    }

    /// Whether there are no members.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Number of members.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Members of either.
    pub fn union(self, other: AxisSet) -> AxisSet {
        AxisSet(self.0 | other.0)
    }

    /// Members of both.
    pub fn intersect(self, other: AxisSet) -> AxisSet {
        AxisSet(self.0 & other.0)
    }

    /// Members of this that are not in the other.
    pub fn minus(self, other: AxisSet) -> AxisSet {
        AxisSet(self.0 & !other.0)
    }

    /// Whether every member is in the other.
    pub fn is_subset(self, other: AxisSet) -> bool {
        self.minus(other).is_empty()
    }

    /// With one axis more.
    #[must_use]
    pub fn with(self, axis: AxisId) -> AxisSet {
        self.union(AxisSet::one(axis))
    }

    /// With one axis less.
    #[must_use]
    pub fn without(self, axis: AxisId) -> AxisSet {
        self.minus(AxisSet::one(axis))
    }

    /// Members in ascending order.
    pub fn iter(self) -> impl Iterator<Item = AxisId> {
        (0..64u8).map(AxisId).filter(move |a| self.contains(*a))
    }
}

impl FromIterator<AxisId> for AxisSet {
    fn from_iter<I: IntoIterator<Item = AxisId>>(axes: I) -> AxisSet {
        axes.into_iter().fold(AxisSet::EMPTY, AxisSet::with)
    }
}

impl fmt::Display for AxisId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
