{% if cookiecutter.replaces_class %}
"""What takes the place of `{{ cookiecutter.target }}`. Imports the class that it derives from, so only `register` imports it."""

from __future__ import annotations

from {{ cookiecutter.class_module }} import {{ cookiecutter.class_name }}


class {{ cookiecutter.function }}({{ cookiecutter.class_name }}):
    """`{{ cookiecutter.class_name }}`, and whatever is added here. Code that holds the original class already keeps it."""
{% endif %}
