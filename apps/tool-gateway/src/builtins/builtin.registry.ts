import { registrationProblem } from '@ambit/capability';
import { ToolRegistration } from '@ambit/contracts';
import type { Builtin } from './builtin.js';

/** Every built-in by its name. Construction throws on a name that is not in the reserved table, stands there with another exposure, or comes twice. */
export class BuiltinRegistry {
  readonly #byName = new Map<string, Builtin>();

  constructor(builtins: readonly Builtin[]) {
    const problems: string[] = [];
    for (const builtin of builtins) {
      const registration = ToolRegistration.parse(builtin.registration);
      const problem = registrationProblem(registration.name, registration.exposure);
      if (problem !== null) problems.push(`${registration.name} as ${registration.exposure}: ${problem}`);
      if (this.#byName.has(registration.name)) problems.push(`${registration.name} is registered twice`);
      if ((registration.exposure === 'diagnostic') !== (builtin.kind === 'diagnostic'))
        problems.push(`${registration.name}: a diagnostic handler and the diagnostic exposure belong together`);
      this.#byName.set(registration.name, { ...builtin, registration });
    }
    if (problems.length > 0)
      throw new Error(`built-in tools are registered wrongly; mend the registration or the reserved table:\n${problems.join('\n')}`);
  }

  find(name: string): Builtin | undefined {
    return this.#byName.get(name);
  }

  registrations(): ToolRegistration[] {
    return [...this.#byName.values()].map(({ registration }) => registration);
  }
}
