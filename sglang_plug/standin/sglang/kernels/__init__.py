"""Operations that a device may implement its own way."""
