import { SkillBuilders } from './builders.js';
import { listedSkills } from './listed.js';
import { readYaml, searchedSkills, textOf } from './searched.js';

/** Everything that skills of servers need; imported when they are switched on, and never before. */
export interface SkillModule {
  readonly builders: SkillBuilders;
  readonly readYaml: typeof readYaml;
  readonly textOf: typeof textOf;
}

/** Throws where something of it is missing. */
export function skillModule(): SkillModule {
  const builders = new SkillBuilders();
  builders.register('listed', listedSkills);
  builders.register('searched', searchedSkills);
  return { builders: builders.complete(), readYaml, textOf };
}
