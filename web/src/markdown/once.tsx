/** Something that is rendered once for the same object, however often what is around it is. */

import { Component, type ComponentChildren } from "preact";

interface OnceProps<Subject> {
  of: Subject;
  render: (subject: Subject) => ComponentChildren;
}

export class Once<Subject> extends Component<OnceProps<Subject>> {
  override shouldComponentUpdate(next: OnceProps<Subject>): boolean {
    return next.of !== this.props.of;
  }

  override render(): ComponentChildren {
    return this.props.render(this.props.of);
  }
}
