import { registrationProblem } from '@ambit/capability';
import { ToolRegistration } from '@ambit/contracts';
import type { Log } from '@ambit/bus';
import type { Builtin } from './builtin.js';

/** Built-ins that are loaded together, and are missing together where that fails. */
export interface BuiltinGroup {
  readonly name: string;
  readonly load: () => readonly Builtin[];
}

/**
 * Every built-in by its name. A group that cannot be loaded is left out and named, and takes nothing from the others. Construction throws on a
 * name that is not in the reserved table, stands there with another exposure, or comes twice: that is a fault of the release.
 */
export class BuiltinRegistry {
  readonly #byName = new Map<string, Builtin>();
  readonly unavailable: readonly { readonly group: string; readonly detail: string }[];

  constructor(groups: readonly BuiltinGroup[], log: Pick<Log, 'error'>) {
    const unavailable: { group: string; detail: string }[] = [];
    const loaded = groups.flatMap(({ name, load }) => {
      try {
        return load();
      } catch (error) {
        log.error({ error, group: name }, 'a group of built-in tools could not be loaded; going on without it');
        unavailable.push({ group: name, detail: 'the group could not be loaded' });
        return [];
      }
    });
    this.unavailable = unavailable;
    const problems = loaded.flatMap((builtin) => this.#add(builtin));
    if (problems.length > 0)
      throw new Error(`built-in tools are registered wrongly; mend the registration or the reserved table:\n${problems.join('\n')}`);
  }

  find(name: string): Builtin | undefined {
    return this.#byName.get(name);
  }

  registrations(): ToolRegistration[] {
    return [...this.#byName.values()].map(({ registration }) => registration);
  }

  #add(builtin: Builtin): string[] {
    const parsed = ToolRegistration.safeParse(builtin.registration);
    if (!parsed.success)
      return [`${builtin.registration.name}: ${parsed.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`).join('; ')}`];
    const { data: registration } = parsed;
    const { name, exposure } = registration;
    const problem = registrationProblem(name, exposure);
    const isTwice = this.#byName.has(name);
    this.#byName.set(name, { ...builtin, registration });
    return [
      ...(problem === null ? [] : [`${name} as ${exposure}: ${problem}`]),
      ...(isTwice ? [`${name} is registered twice`] : []),
      ...((exposure === 'diagnostic') === (builtin.kind === 'diagnostic')
        ? []
        : [`${name}: a diagnostic handler and the diagnostic exposure belong together`]),
    ];
  }
}
