//! Classic BPF: verification, and an interpreter that can't go wrong on a verified program.
//!
//! Instructions and their meaning are those of McCanne and Jacobson, "The BSD Packet Filter" (USENIX
//! Winter 1993), with the `mod` and `xor` that Linux 3.7 and libpcap 1.4 added. Verification decodes each
//! instruction into a closed enum, so that running has no case left over; jumps only go forward, so that
//! every run ends.

use std::fmt;

/// The longest program that Linux attaches to a socket (`BPF_MAXINSNS`).
pub const INSTRUCTIONS_MAX: usize = 4096;

/// Scratch memory in words (`BPF_MEMWORDS`).
const MEMORY_WORDS: usize = 16;

/// One instruction as the kernel and libpcap lay it out (`struct sock_filter`, `struct bpf_insn`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What to do: class, size, mode, source.
    pub code: u16,
    /// Instructions to skip when a condition holds.
    pub jt: u8,
    /// Instructions to skip when it doesn't.
    pub jf: u8,
    /// A constant, offset, or memory slot.
    pub k: u32,
}

const _: () = assert!(size_of::<Instruction>() == 8);

/// Why a program is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyError {
    /// It has no instruction at all.
    Empty,
    /// It has more than [`INSTRUCTIONS_MAX`] instructions.
    TooLong {
        /// Number of instructions.
        instructions: usize,
    },
    /// No such instruction in classic BPF.
    UnknownCode {
        /// Index of the instruction.
        at: usize,
        /// Its code.
        code: u16,
    },
    /// A jump leads past the end.
    JumpOutOfBounds {
        /// Index of the instruction.
        at: usize,
    },
    /// A memory slot beyond the 16 there are.
    MemoryOutOfBounds {
        /// Index of the instruction.
        at: usize,
    },
    /// A division by a constant zero.
    DivisionByZero {
        /// Index of the instruction.
        at: usize,
    },
    /// The last instruction is not a return.
    NoReturn,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty => f.write_str("it has no instructions"),
            Self::TooLong { instructions } => {
                write!(f, "{instructions} instructions are more than {INSTRUCTIONS_MAX}")
            }
            Self::UnknownCode { at, code } => {
                write!(f, "instruction {at} has the unknown code {code:#06x}")
            }
            Self::JumpOutOfBounds { at } => write!(f, "instruction {at} jumps past the end"),
            Self::MemoryOutOfBounds { at } => {
                write!(f, "instruction {at} names a memory slot that doesn't exist")
            }
            Self::DivisionByZero { at } => write!(f, "instruction {at} divides by zero"),
            Self::NoReturn => f.write_str("it does not end with a return"),
        }
    }
}

impl std::error::Error for VerifyError {}

/// Where the second operand comes from.
#[derive(Clone, Copy, Debug)]
enum Operand {
    Constant(u32),
    Index,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    Word,
    Half,
    Byte,
}

#[derive(Clone, Copy, Debug)]
enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Or,
    And,
    Xor,
    ShiftLeft,
    ShiftRight,
}

#[derive(Clone, Copy, Debug)]
enum Condition {
    Equal,
    Greater,
    GreaterOrEqual,
    AnyBit,
}

/// A decoded instruction. `A` is the accumulator, `X` the index register.
#[derive(Clone, Copy, Debug)]
enum Operation {
    /// A = packet[k]
    LoadAbsolute(Size, u32),
    /// A = packet[X + k]
    LoadIndirect(Size, u32),
    /// A = k
    LoadConstant(u32),
    /// A = length on the wire
    LoadLength,
    /// A = memory[k]
    LoadMemory(u8),
    /// X = k
    IndexConstant(u32),
    /// X = length on the wire
    IndexLength,
    /// X = memory[k]
    IndexMemory(u8),
    /// X = 4 * (packet[k] & 15): the length of an IPv4 header
    IndexHeaderLength(u32),
    /// memory[k] = A
    StoreAccumulator(u8),
    /// memory[k] = X
    StoreIndex(u8),
    /// A = A op operand
    Compute(Arithmetic, Operand),
    /// A = -A
    Negate,
    /// Skip so many
    Jump(u32),
    /// Skip the first number if the condition holds for A and the operand, else the second
    Branch(Condition, Operand, u8, u8),
    /// X = A
    AccumulatorToIndex,
    /// A = X
    IndexToAccumulator,
    /// The answer is k
    Return(u32),
    /// The answer is A
    ReturnAccumulator,
}

/// A program that has passed verification.
#[derive(Clone, Debug)]
pub(super) struct Verified(Vec<Operation>);

impl Verified {
    pub(super) fn new(instructions: &[Instruction]) -> Result<Self, VerifyError> {
        let count = instructions.len();
        if count == 0 {
            return Err(VerifyError::Empty);
        }
        if count > INSTRUCTIONS_MAX {
            return Err(VerifyError::TooLong { instructions: count });
        }
        let operations: Vec<Operation> = instructions
            .iter()
            .enumerate()
            .map(|(at, instruction)| verify(at, *instruction, count))
            .collect::<Result<_, _>>()?;
        match operations.last() {
            Some(Operation::Return(_) | Operation::ReturnAccumulator) => Ok(Self(operations)),
            _ => Err(VerifyError::NoReturn),
        }
    }

    /// Runs to the answer. A load beyond the packet's end and a division by a zero in `X` answer 0, a
    /// shift by 32 or more gives 0, and memory starts as zeros; libpcap does the same.
    pub(super) fn run(&self, packet: &[u8], original_length: u32) -> u32 {
        let mut accumulator = 0u32;
        let mut index = 0u32;
        let mut memory = [0u32; MEMORY_WORDS];
        let mut next = 0usize;
        // Verification holds `next` inside the program; were it ever not, the packet is refused.
        while let Some(&operation) = self.0.get(next) {
            next += 1;
            match operation {
                Operation::LoadAbsolute(size, offset) => {
                    match load(packet, offset as usize, size) {
                        Some(value) => accumulator = value,
                        None => return 0,
                    }
                }
                Operation::LoadIndirect(size, offset) => {
                    match load(packet, index as usize + offset as usize, size) {
                        Some(value) => accumulator = value,
                        None => return 0,
                    }
                }
                Operation::LoadConstant(value) => accumulator = value,
                Operation::LoadLength => accumulator = original_length,
                Operation::LoadMemory(slot) => accumulator = memory[slot as usize % MEMORY_WORDS],
                Operation::IndexConstant(value) => index = value,
                Operation::IndexLength => index = original_length,
                Operation::IndexMemory(slot) => index = memory[slot as usize % MEMORY_WORDS],
                Operation::IndexHeaderLength(offset) => match packet.get(offset as usize) {
                    Some(byte) => index = u32::from(byte & 0x0f) * 4,
                    None => return 0,
                },
                Operation::StoreAccumulator(slot) => {
                    memory[slot as usize % MEMORY_WORDS] = accumulator;
                }
                Operation::StoreIndex(slot) => memory[slot as usize % MEMORY_WORDS] = index,
                Operation::Compute(arithmetic, operand) => {
                    match compute(arithmetic, accumulator, value_of(operand, index)) {
                        Some(value) => accumulator = value,
                        None => return 0,
                    }
                }
                Operation::Negate => accumulator = accumulator.wrapping_neg(),
                Operation::Jump(skip) => next += skip as usize,
                Operation::Branch(condition, operand, if_true, if_false) => {
                    let operand = value_of(operand, index);
                    let holds = match condition {
                        Condition::Equal => accumulator == operand,
                        Condition::Greater => accumulator > operand,
                        Condition::GreaterOrEqual => accumulator >= operand,
                        Condition::AnyBit => accumulator & operand != 0,
                    };
                    next += usize::from(if holds { if_true } else { if_false });
                }
                Operation::AccumulatorToIndex => index = accumulator,
                Operation::IndexToAccumulator => accumulator = index,
                Operation::Return(answer) => return answer,
                Operation::ReturnAccumulator => return accumulator,
            }
        }
        0
    }
}

fn value_of(operand: Operand, index: u32) -> u32 {
    match operand {
        Operand::Constant(value) => value,
        Operand::Index => index,
    }
}

fn load(packet: &[u8], offset: usize, size: Size) -> Option<u32> {
    let rest = packet.get(offset..)?;
    match size {
        Size::Word => rest.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)),
        Size::Half => rest.first_chunk().map(|bytes| u32::from(u16::from_be_bytes(*bytes))),
        Size::Byte => rest.first().map(|byte| u32::from(*byte)),
    }
}

fn compute(arithmetic: Arithmetic, left: u32, right: u32) -> Option<u32> {
    Some(match arithmetic {
        Arithmetic::Add => left.wrapping_add(right),
        Arithmetic::Subtract => left.wrapping_sub(right),
        Arithmetic::Multiply => left.wrapping_mul(right),
        Arithmetic::Divide => left.checked_div(right)?,
        Arithmetic::Modulo => left.checked_rem(right)?,
        Arithmetic::Or => left | right,
        Arithmetic::And => left & right,
        Arithmetic::Xor => left ^ right,
        Arithmetic::ShiftLeft => left.checked_shl(right).unwrap_or(0),
        Arithmetic::ShiftRight => left.checked_shr(right).unwrap_or(0),
    })
}

/// Decodes one instruction and checks what it names. The codes are those of `linux/bpf_common.h`.
fn verify(at: usize, instruction: Instruction, count: usize) -> Result<Operation, VerifyError> {
    let Instruction { code, jt, jf, k } = instruction;
    let unknown = VerifyError::UnknownCode { at, code };
    let slot = || match u8::try_from(k) {
        Ok(slot) if usize::from(slot) < MEMORY_WORDS => Ok(slot),
        _ => Err(VerifyError::MemoryOutOfBounds { at }),
    };
    let reachable = |skip: u32| {
        if at as u64 + 1 + u64::from(skip) < count as u64 {
            Ok(())
        } else {
            Err(VerifyError::JumpOutOfBounds { at })
        }
    };
    let operand = if code & 0x08 == 0 { Operand::Constant(k) } else { Operand::Index };
    let size = match code & 0x18 {
        0x00 => Some(Size::Word),
        0x08 => Some(Size::Half),
        0x10 => Some(Size::Byte),
        _ => None,
    };
    Ok(match code {
        0x20 | 0x28 | 0x30 => Operation::LoadAbsolute(size.ok_or(unknown)?, k),
        0x40 | 0x48 | 0x50 => Operation::LoadIndirect(size.ok_or(unknown)?, k),
        0x00 => Operation::LoadConstant(k),
        0x80 => Operation::LoadLength,
        0x60 => Operation::LoadMemory(slot()?),
        0x01 => Operation::IndexConstant(k),
        0x81 => Operation::IndexLength,
        0x61 => Operation::IndexMemory(slot()?),
        0xb1 => Operation::IndexHeaderLength(k),
        0x02 => Operation::StoreAccumulator(slot()?),
        0x03 => Operation::StoreIndex(slot()?),
        0x84 => Operation::Negate,
        0x05 => {
            reachable(k)?;
            Operation::Jump(k)
        }
        0x06 => Operation::Return(k),
        0x16 => Operation::ReturnAccumulator,
        0x07 => Operation::AccumulatorToIndex,
        0x87 => Operation::IndexToAccumulator,
        _ => match (code & 0x07, code & !0x0f) {
            (0x04, kind) => {
                let arithmetic = arithmetic(kind).ok_or(unknown)?;
                let divides = matches!(arithmetic, Arithmetic::Divide | Arithmetic::Modulo);
                if divides && matches!(operand, Operand::Constant(0)) {
                    return Err(VerifyError::DivisionByZero { at });
                }
                Operation::Compute(arithmetic, operand)
            }
            (0x05, kind) => {
                let condition = condition(kind).ok_or(unknown)?;
                reachable(u32::from(jt))?;
                reachable(u32::from(jf))?;
                Operation::Branch(condition, operand, jt, jf)
            }
            _ => return Err(unknown),
        },
    })
}

fn arithmetic(kind: u16) -> Option<Arithmetic> {
    Some(match kind {
        0x00 => Arithmetic::Add,
        0x10 => Arithmetic::Subtract,
        0x20 => Arithmetic::Multiply,
        0x30 => Arithmetic::Divide,
        0x40 => Arithmetic::Or,
        0x50 => Arithmetic::And,
        0x60 => Arithmetic::ShiftLeft,
        0x70 => Arithmetic::ShiftRight,
        0x90 => Arithmetic::Modulo,
        0xa0 => Arithmetic::Xor,
        _ => return None,
    })
}

fn condition(kind: u16) -> Option<Condition> {
    Some(match kind {
        0x10 => Condition::Equal,
        0x20 => Condition::Greater,
        0x30 => Condition::GreaterOrEqual,
        0x40 => Condition::AnyBit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RETURN: Instruction = Instruction { code: 0x06, jt: 0, jf: 0, k: 1 };

    fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> Instruction {
        Instruction { code, jt, jf, k }
    }

    #[test]
    fn a_program_that_could_go_wrong_is_refused_with_the_place() {
        for (program, wrong) in [
            (vec![], VerifyError::Empty),
            (vec![RETURN; 5000], VerifyError::TooLong { instructions: 5000 }),
            (vec![instruction(0x00, 0, 0, 1)], VerifyError::NoReturn),
            (
                vec![instruction(0xffff, 0, 0, 0), RETURN],
                VerifyError::UnknownCode { at: 0, code: 0xffff },
            ),
            (vec![instruction(0x15, 0, 1, 7), RETURN], VerifyError::JumpOutOfBounds { at: 0 }),
            (
                vec![instruction(0x05, 0, 0, u32::MAX), RETURN],
                VerifyError::JumpOutOfBounds { at: 0 },
            ),
            (vec![instruction(0x60, 0, 0, 16), RETURN], VerifyError::MemoryOutOfBounds { at: 0 }),
            (vec![instruction(0x34, 0, 0, 0), RETURN], VerifyError::DivisionByZero { at: 0 }),
        ] {
            assert_eq!(Verified::new(&program).unwrap_err(), wrong);
        }
    }

    #[test]
    fn loads_beyond_the_packet_and_divisions_by_a_zero_index_refuse_it() {
        for first in [
            instruction(0x20, 0, 0, 1),
            instruction(0x48, 0, 0, u32::MAX),
            instruction(0xb1, 0, 0, 4),
            instruction(0x3c, 0, 0, 0),
            instruction(0x9c, 0, 0, 0),
        ] {
            let verified = Verified::new(&[first, RETURN]).unwrap();
            assert_eq!(verified.run(&[1, 2, 3, 4], 4), 0, "{first:?}");
        }
    }

    /// Half of them real codes, so that programs get somewhere.
    fn any_instruction() -> impl Strategy<Value = Instruction> {
        let code = prop_oneof![
            prop::sample::select(vec![
                0x20u16, 0x28, 0x30, 0x40, 0x48, 0x50, 0x00, 0x80, 0x60, 0x01, 0x81, 0x61, 0xb1,
                0x02, 0x03, 0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3c, 0x44, 0x4c, 0x54, 0x5c,
                0x64, 0x6c, 0x74, 0x7c, 0x84, 0x94, 0x9c, 0xa4, 0xac, 0x05, 0x15, 0x1d, 0x25, 0x2d,
                0x35, 0x3d, 0x45, 0x4d, 0x06, 0x16, 0x07, 0x87,
            ]),
            0u16..0x200,
        ];
        let k = prop_oneof![0u32..24, any::<u32>()];
        (code, 0u8..4, 0u8..4, k).prop_map(|(code, jt, jf, k)| instruction(code, jt, jf, k))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn no_verified_program_panics_on_any_packet(
            mut program in prop::collection::vec(any_instruction(), 0..24),
            packet in prop::collection::vec(any::<u8>(), 0..80),
            original_length in any::<u32>(),
        ) {
            program.extend([RETURN; 4]);
            // What isn't an instruction goes, so that most programs pass.
            program.retain(|i| {
                !matches!(verify(0, *i, usize::MAX),
                    Err(VerifyError::UnknownCode { .. } | VerifyError::DivisionByZero { .. }
                        | VerifyError::MemoryOutOfBounds { .. } | VerifyError::JumpOutOfBounds { .. }))
            });
            if let Ok(verified) = Verified::new(&program) {
                let first = verified.run(&packet, original_length);
                prop_assert_eq!(first, verified.run(&packet, original_length));
            }
        }
    }
}
