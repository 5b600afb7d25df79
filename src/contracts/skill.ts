/** A skill as one run has it: what the prompt says about it, and the exact content that its owner has accepted. */
export type Skill = {
  readonly name: string;
  /** One line. */
  readonly description: string;
  /** Its folder, absolute. */
  readonly folder: string;
  /** `sha256-` and 64 hexadecimal digits, over all of its files. */
  readonly digest: string;
};

/** The skills of a run, by name; plain data that is stored with the run. */
export type SkillSnapshot = {
  /** The same for the same skills. */
  readonly id: string;
  readonly skills: readonly Skill[];
};

/** A file of a skill, as it was read for its digest. */
export type SkillFile = { readonly bytes: Buffer; readonly isExecutable: boolean };

/** Reads a skill and compares what it has read with what was accepted. */
export interface SkillReader {
  /** Throws ParleyError `tool_failed`, for the model to read, if the files aren't those that were accepted. */
  read(skill: Skill): Promise<ReadonlyMap<string, SkillFile>>;
  /** Returns the variables that commands of this skill get. */
  environmentOf(name: string): Readonly<Record<string, string>>;
}
